-- task_cancel: running -> cancelled
-- Ends a task whose handler has cancelled it, or has heeded that somebody asked for it.
-- Commits by itself, as durable as an answer.
-- $1 queue  $2 id  $3 fence  $4 why, or null
-- Rows: its status and attempts; none = the lease was lost.
with raised as materialized (
    select clock_timestamp() as t,
           set_config('synchronous_commit',
                      case current_setting('synchronous_commit')
                           when 'remote_apply' then 'remote_apply' else 'on' end, true) as durable
)
update idem.tasks as c
set    status = 'cancelled', attempts = least(c.attempts + 1, 1000000), alone = false, lease_until = null, updated_at = t, finished_at = t,
       last_error = coalesce($4, c.last_error), expires_at = t + make_interval(secs => greatest(c.retention, 86400))
from   raised
where  c.queue = $1 is true and c.id = $2 and c.fence = $3 and c.status = 'running' and durable is not null
returning c.status, c.attempts;
