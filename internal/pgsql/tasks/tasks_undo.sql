-- tasks_undo: running -> pending, cancelled
-- Gives back what a take has taken whose reply was lost: nobody has started anything of
-- it, so no attempt is counted, also not by whoever finds what is left of it. A take that
-- is not there may only be late: then a row of its fence keeps it out, since its own row
-- fails, and with it all that it takes. That row names the task 0, which is none, and is
-- forgotten like others when its lease is over. Waits a moment for a take that is under
-- way, and fails if it still is (55P03). Commits by itself, as durable as an answer.
-- $1 queue  $2 fence  $3 worker
-- Rows: one: whether something may be left, to be asked for again: it is locked, or has
-- come while this was waiting.
with raised as materialized (
    select clock_timestamp() as t,
           set_config('synchronous_commit',
                      case current_setting('synchronous_commit')
                           when 'remote_apply' then 'remote_apply' else 'on' end, true) as durable,
           set_config('lock_timeout', '100ms', true) as patience
), lost as (
    insert into idem.takes as k (queue, fence, worker, taken_at, lease_until, started, tasks)
    select $1, $2, $3, t, t + interval '1 hour', 0, array[0]
    from   raised
    where  durable is not null and patience is not null
    on     conflict (fence) do update set started = 0
    returning k.tasks
), looked as materialized ( -- task by task, whatever the planner knows of the table
    select c.id, h.id is not null as held
    from   lost cross join unnest(lost.tasks) as u (id)
    cross  join lateral (
        select c.id from idem.tasks as c
        where  c.queue = $1 is true and c.id = u.id and c.fence = $2 and c.status = 'running'
        offset 0
    ) as c
    left   join lateral (
        select c.id from idem.tasks as c
        where  c.queue = $1 is true and c.id = u.id and c.fence = $2 and c.status = 'running'
        for    no key update of c skip locked
    ) as h on true
), undone as (
    update idem.tasks as c
    set    status = case when c.cancel_at is null then 'pending' else 'cancelled' end,
           fence = case when c.cancel_at is not null then c.fence end,
           lease_until = null, updated_at = t,
           finished_at = case when c.cancel_at is not null then t end,
           expires_at = case when c.cancel_at is not null then t + make_interval(secs => greatest(c.retention, 86400)) end
    from   looked, raised
    where  c.queue = $1 is true and c.id = looked.id and c.fence = $2 and looked.held
)
select exists (select from looked where not held)
       or exists (select from lost where tasks <> array[0]::bigint[]) -- and is not seen by this statement
          and not exists (select from idem.takes as k where k.queue = $1 and k.fence = $2);
