-- task_rescue: running -> pending, failed, cancelled
-- Finds the tasks of workers that have died: their lease is over. One whose handler was
-- never started waits as before; of one that was running the attempt counts, and it is
-- taken alone from now on, or has used its attempts up. Skips what is locked, which is
-- looked at again a second later. Commits by itself, as durable as an answer.
-- A worker trusts itself for a second longer: it may only be late.
-- $1 queue  $2 how many takes at most  $3 what is said of an attempt whose worker died
-- $4 the worker that looks
-- Rows: the tasks that were given back, with what has become of them, and whether their
-- handlers may have been started.
with raised as materialized (
    select clock_timestamp() as t,
           set_config('synchronous_commit',
                      case current_setting('synchronous_commit')
                           when 'remote_apply' then 'remote_apply' else 'on' end, true) as durable
), dead as materialized (
    select k.fence, k.started, k.tasks
    from   idem.takes as k, raised
    where  k.queue = $1 and k.lease_until <= raised.t
    and   (k.worker <> $4 or k.lease_until <= raised.t - interval '1 second')
    order  by k.lease_until
    limit  $2
    for    update of k skip locked
), mine as materialized (
    select dead.fence, u.id, u.n <= dead.started as started
    from   dead cross join unnest(dead.tasks) with ordinality as u (id, n)
), looked as materialized ( -- task by task, whatever the planner knows of the table (see take_end)
    select m.fence, m.started, c.id, h.id is not null as held,
           case when h.cancel_at is not null then 'cancelled'
                when m.started and h.attempts + 1 >= h.max_attempts then 'failed'
                else 'pending' end as becomes
    from   mine as m
    cross  join lateral (
        select c.id from idem.tasks as c
        where  c.queue = $1 is true and c.id = m.id and c.fence = m.fence and c.status = 'running'
        offset 0
    ) as c
    left   join lateral (
        select c.id, c.cancel_at, c.attempts, c.max_attempts from idem.tasks as c cross join raised
        where  c.queue = $1 is true and c.id = m.id and c.fence = m.fence and c.status = 'running' and c.lease_until <= raised.t
        for    no key update of c skip locked
    ) as h on true
), held as materialized (
    select * from looked where held
), rescued as (
    update idem.tasks as c
    set    status = becomes, attempts = least(c.attempts + started::integer, 1000000), alone = c.alone or started, lease_until = null,
           fence = case when becomes <> 'pending' then c.fence end, updated_at = t,
           last_error = case when started then $3 else c.last_error end,
           errors = case when started
                         then (case when jsonb_array_length(c.errors) >= 25 then c.errors - 0 else coalesce(c.errors, '[]') end) || jsonb_build_object('attempt', c.attempts + 1, 'at', t, 'error', $3::text)
                         else c.errors end,
           finished_at = case when becomes <> 'pending' then t end,
           expires_at = case becomes when 'cancelled' then t + make_interval(secs => greatest(c.retention, 86400))
                                     when 'failed' then t + make_interval(secs => greatest(c.retention, 2592000)) end
    from   held, raised
    where  c.queue = $1 is true and c.id = held.id and c.fence = held.fence and c.status = 'running' and durable is not null
    returning c.id, c.kind, c.task_key, c.status, c.attempts, held.started
), left_over as materialized (
    select distinct fence from looked where not held
), later as (
    update idem.takes as k
    set    lease_until = t + interval '1 second'
    from   left_over, raised
    where  k.queue = $1 and k.fence = left_over.fence
), gone as (
    delete from idem.takes as k
    using  dead
    where  k.queue = $1 and k.fence = dead.fence and not exists (select from left_over where left_over.fence = dead.fence)
)
select id, kind, task_key, status, attempts, started from rescued;
