-- task_start: running -> running
-- Notes, before handlers are started, how many of a take's tasks may have been: the
-- attempts that count if the worker dies. A lost note only leaves an attempt uncounted
-- when server and worker die at once, so it waits for no disk. More may have been noted
-- before, by a note whose reply was lost: that stands.
-- $1 queue  $2 fences  $3 how many of each
-- Rows: the positions, from 1, of those noted, and how many are; one that is missing was
-- ended by others.
with raised as materialized (
    select set_config('synchronous_commit', 'off', true) as light
), asked as materialized (
    select * from unnest($2::uuid[], $3::integer[]) with ordinality as a (fence, started, n)
)
update idem.takes as k
set    started = greatest(k.started, asked.started)
from   asked, raised
where  k.queue = $1 and k.fence = asked.fence and light is not null
returning asked.n, k.started;
