-- queues_with_tasks: whether a queue has tasks, and which queues have.
-- $1 queue  $2 how many names at most
-- Rows: one: whether it has any, also finished ones, and the names of those that have, in
-- order. Reads one entry of an index for each.
with recursive named as (
    (select c.queue::text collate "C" as queue, 1 as n from idem.tasks as c order by c.queue limit 1)
    union all
    select (select c.queue::text collate "C" from idem.tasks as c where c.queue > b.queue order by c.queue limit 1), b.n + 1
    from   named as b
    where  b.queue is not null and b.n < $2
)
select exists (select from idem.tasks as c where c.queue = $1),
       coalesce((select array_agg(queue order by n) from named where queue is not null), '{}');
