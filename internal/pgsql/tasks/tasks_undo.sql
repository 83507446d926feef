-- tasks_undo: running -> pending, cancelled
-- Gives back what takes have taken whose reply was lost: nobody has started anything of
-- it, so no attempt is counted. Commits by itself, as durable as an answer.
-- $1 queue  $2 fences
-- Rows: those given back; 0 = nothing was taken, or it was found by others.
with raised as materialized (
    select clock_timestamp() as t,
           set_config('synchronous_commit',
                      case current_setting('synchronous_commit')
                           when 'remote_apply' then 'remote_apply' else 'on' end, true) as durable
), mine as materialized (
    select k.fence, u.id
    from   idem.takes as k cross join unnest(k.tasks) as u (id)
    where  k.queue = $1 and k.fence = any ($2::uuid[])
), held as materialized (
    select c.id, c.fence
    from   mine as m join idem.tasks as c on c.id = m.id and c.fence = m.fence
    where  c.queue = $1 and c.status = 'running'
    order  by c.id
    for    no key update of c skip locked
)
update idem.tasks as c
set    status = case when c.cancel_at is null then 'pending' else 'cancelled' end,
       fence = case when c.cancel_at is not null then c.fence end,
       lease_until = null, updated_at = t,
       finished_at = case when c.cancel_at is not null then t end,
       expires_at = case when c.cancel_at is not null then t + make_interval(secs => greatest(c.retention, 86400)) end
from   held, raised
where  c.queue = $1 and c.id = held.id and c.fence = held.fence and durable is not null;
