-- task_fail: running -> failed, cancelled
-- Ends a task that its handler has given up for good, or whose payload cannot be
-- decoded: it is a dead letter, unless somebody has asked for its cancellation. Commits
-- by itself, as durable as an answer.
-- $1 queue  $2 id  $3 fence  $4 the error
-- Rows: its status and attempts; none = the lease was lost.
with raised as materialized (
    select clock_timestamp() as t,
           set_config('synchronous_commit',
                      case current_setting('synchronous_commit')
                           when 'remote_apply' then 'remote_apply' else 'on' end, true) as durable
)
update idem.tasks as c
set    attempts = least(c.attempts + 1, 1000000), alone = false, lease_until = null, updated_at = t, finished_at = t, last_error = $4,
       errors = (case when jsonb_array_length(c.errors) >= 25 then c.errors - 0 else coalesce(c.errors, '[]') end) || jsonb_build_object('attempt', c.attempts + 1, 'at', t, 'error', $4::text),
       status = case when c.cancel_at is not null then 'cancelled' else 'failed' end,
       expires_at = t + make_interval(secs => greatest(c.retention, case when c.cancel_at is not null then 86400 else 2592000 end))
from   raised
where  c.queue = $1 is true and c.id = $2 and c.fence = $3 and c.status = 'running' and durable is not null
returning c.status, c.attempts;
