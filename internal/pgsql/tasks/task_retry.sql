-- task_retry: running -> pending, failed, cancelled
-- Ends an attempt that has failed: the task waits for the next one, unless its attempts
-- are used up or somebody has asked for its cancellation. Commits by itself, as durable
-- as an answer.
-- $1 queue  $2 id  $3 fence  $4 the error  $5 seconds until the next attempt
-- Rows: its status, attempts and when it runs; none = the lease was lost.
with raised as materialized (
    select clock_timestamp() as t,
           set_config('synchronous_commit',
                      case current_setting('synchronous_commit')
                           when 'remote_apply' then 'remote_apply' else 'on' end, true) as durable
)
update idem.tasks as c
set    attempts = least(c.attempts + 1, 1000000), alone = false, lease_until = null, updated_at = t, last_error = $4,
       errors = (case when jsonb_array_length(c.errors) >= 25 then c.errors - 0 else coalesce(c.errors, '[]') end) || jsonb_build_object('attempt', c.attempts + 1, 'at', t, 'error', $4::text),
       status = case when c.cancel_at is not null then 'cancelled'
                     when c.attempts + 1 >= c.max_attempts then 'failed' else 'pending' end,
       fence = case when c.cancel_at is null and c.attempts + 1 < c.max_attempts then null else c.fence end,
       run_at = case when c.cancel_at is null and c.attempts + 1 < c.max_attempts
                     then t + make_interval(secs => $5::double precision) else c.run_at end,
       finished_at = case when c.cancel_at is null and c.attempts + 1 < c.max_attempts then null else t end,
       expires_at = case when c.cancel_at is not null then t + make_interval(secs => greatest(c.retention, 86400))
                         when c.attempts + 1 >= c.max_attempts then t + make_interval(secs => greatest(c.retention, 2592000)) end
from   raised
where  c.queue = $1 is true and c.id = $2 and c.fence = $3 and c.status = 'running' and durable is not null
returning c.status, c.attempts;
