-- take_allowed: a take has tasks, each of them once, and no more of them were started
-- than there are; its lease is one that a worker may have (24 hours; five minutes of
-- grace for a clock set back), since nobody looks at its tasks before that is over.
-- Rows: one for each broken row: table, row, detail.
select 'idem.takes', k.queue || ' ' || k.fence, 'its tasks, how many of them were started, or its lease cannot be a worker''s'
from   idem.takes as k
where  (cardinality(k.tasks) > 0 and k.started between 0 and cardinality(k.tasks)
        and array_position(k.tasks, null) is null
        and (select count(distinct id) from unnest(k.tasks) as u (id)) = cardinality(k.tasks)
        and k.lease_until <= clock_timestamp() + interval '24 hours 5 minutes') is not true;
