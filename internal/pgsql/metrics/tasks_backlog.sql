-- tasks_backlog: how many tasks of each queue wait, run and have failed for good, and for
-- how long the one that has been due for longest has waited.
-- $1 queues to be told of, whether they have tasks or not
-- Rows: for each of 50 queues at most its name; how many are pending, running and failed, each
-- 10,000 at most; for how many seconds its oldest due task has waited: pending, or running when
-- its worker fell silent; 0 if none has. Those of $1 come first, then those with failed tasks.
-- Reads by indexes, 10,000 entries of each at most: tasks_take for each queue, tasks_failed
-- from its end (so that failed ones older than the last 10,000 that have once failed are not
-- counted), the tasks of the takes by their ids. Counts no finished task but those. The bounds
-- are no parameters: a plan for any number of rows would be one for all of them.
with recursive known as (
    select unnest($1::text[]) collate "C" as queue
), named as (
    (select c.queue::text collate "C" as queue, 1 as n from idem.tasks as c
     where c.finished_at is null and not c.alone order by c.queue limit 1)
    union all
    select (select c.queue::text collate "C" from idem.tasks as c
            where c.finished_at is null and not c.alone and c.queue > b.queue order by c.queue limit 1), b.n + 1
    from named as b where b.queue is not null and b.n < 50
), failed as materialized (
    select f.queue, count(*) as number
    from (select c.queue::text collate "C" as queue, c.status from idem.tasks as c
          where c.finished_at is not null and c.last_error is not null order by c.id desc limit 10000) as f
    where f.status = 'failed' group by f.queue
), taken as materialized (
    select k.queue, count(*) as number,
           max(extract(epoch from clock_timestamp() - k.lease_until)) as silent
    from (select t.queue, t.fence, t.tasks, t.lease_until from idem.takes as t order by t.lease_until limit 10000) as k,
         lateral (select from idem.tasks as c where c.id = any (k.tasks) and c.fence = k.fence and c.status = 'running' offset 0) as r
    group by k.queue
), alone as materialized (
    select a.queue, count(*) as number, max(extract(epoch from clock_timestamp() - a.run_at)) as due
    from (select c.queue::text collate "C" as queue, c.run_at, c.status from idem.tasks as c
          where c.finished_at is null and c.alone order by c.queue, c.priority, c.run_at, c.id limit 10000) as a
    where a.status = 'pending' group by a.queue
), queues as (
    select q.queue from (select queue, 1 as place from known union all select queue, 2 from failed union all
                         select queue, 3 from taken union all select queue, 4 from alone union all
                         select queue, 5 from named where queue is not null) as q
    group by q.queue order by min(q.place), q.queue limit 50
)
select q.queue,
       least(10000, coalesce(a.number, 0) + (
           select count(*) from (select from idem.tasks as c
                                 where c.queue = q.queue and c.finished_at is null and not c.alone and c.status = 'pending'
                                 order by c.priority, c.run_at, c.id limit 10000) as p))::float8 as pending,
       least(10000, coalesce(t.number, 0))::float8 as running,
       coalesce(f.number, 0)::float8 as failed,
       greatest(0, a.due, t.silent, (
           select max(extract(epoch from clock_timestamp() - d.run_at))
           from generate_series(-5, 5) as priorities(priority),
                lateral (select c.run_at from idem.tasks as c
                         where c.queue = q.queue and c.priority = priorities.priority::smallint
                         and   c.finished_at is null and not c.alone and c.status = 'pending'
                         order by c.run_at limit 1) as d))::float8 as due
from   queues as q
left   join failed as f on f.queue = q.queue
left   join taken as t on t.queue = q.queue
left   join alone as a on a.queue = q.queue;
