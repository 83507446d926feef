-- task_take_alone: pending -> running
-- Takes a task that was running when its worker died, and nothing beside it, as
-- task_take does: if it is what kills workers, it uses up its own attempts.
-- $1 queue  $2 fence  $3 worker  $4 kinds  $5 their leases in seconds
-- $6 how many at most  $7 how many of them start at once
-- $8 priorities, highest first, $9 due times and $10 ids: behind which of each to look
-- Rows: one for each, in the order in which they are to be started, or one with the id
-- 0. delay: the seconds for which it was due; spent: those that looking took.
with raised as materialized (
    select clock_timestamp() as t,
           set_config('synchronous_commit',
                      case current_setting('synchronous_commit')
                           when 'remote_apply' then 'remote_apply' else 'on' end, true) as durable
), kinds as materialized (
    select * from unnest($4::text[], $5::double precision[]) as k (kind, lease)
), due as materialized (
    select d.id, d.kind
    from   unnest($8::smallint[], $9::timestamptz[], $10::bigint[]) as f (priority, run_at, id)
    cross  join lateral (
        select c.id, c.kind from idem.tasks as c
        where  c.queue = $1 and c.priority = f.priority
        and   (c.run_at, c.id) > (f.run_at, f.id) and c.run_at <= (select t from raised)
        and    c.finished_at is null and c.alone and c.status = 'pending' and c.kind = any ($4::text[])
        order  by c.run_at, c.id
        limit  $6
        for    update skip locked
    ) as d
    where  not exists (select from idem.queues as q where q.queue = $1 and q.paused_at is not null)
    limit  $6
), taken as (
    update idem.tasks as c
    set    status = 'running', fence = $2, takes = least(c.takes + 1, 1000000000), updated_at = raised.t,
           lease_until = raised.t + make_interval(secs => kinds.lease)
    from   due join kinds on kinds.kind = due.kind, raised
    where  c.queue = $1 is true and c.id = due.id and c.status = 'pending' and durable is not null
    returning c.id, c.kind, c.task_key, c.payload, c.priority, c.run_at, c.attempts, c.takes, c.max_attempts, c.retention,
              c.lease_until
), noted as (
    insert into idem.takes (queue, fence, worker, taken_at, lease_until, started, tasks)
    select $1, $2, $3, raised.t, min(taken.lease_until), $7, array_agg(taken.id order by taken.priority desc, taken.run_at, taken.id)
    from   taken, raised
    group  by raised.t
)
select coalesce(c.id, 0), coalesce(c.kind, ''), c.task_key, c.payload, coalesce(c.priority, 0), coalesce(c.run_at, raised.t),
       coalesce(c.attempts, 0), coalesce(c.takes, 0), coalesce(c.max_attempts, 0), coalesce(c.retention, 0),
       coalesce(extract(epoch from raised.t - c.run_at), 0)::double precision as delay,
       extract(epoch from clock_timestamp() - statement_timestamp())::double precision as spent
from   raised left join taken as c on true
order  by c.priority desc, c.run_at, c.id;
