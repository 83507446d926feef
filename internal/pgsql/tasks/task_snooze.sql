-- task_snooze: running -> pending, cancelled
-- Puts a task off as its handler asks: no attempt is counted. One whose cancellation
-- somebody has asked for is cancelled. Commits by itself, as durable as an answer.
-- $1 queue  $2 id  $3 fence  $4 seconds until it runs
-- Rows: its status and attempts; none = the lease was lost.
with raised as materialized (
    select clock_timestamp() as t,
           set_config('synchronous_commit',
                      case current_setting('synchronous_commit')
                           when 'remote_apply' then 'remote_apply' else 'on' end, true) as durable
)
update idem.tasks as c
set    alone = false, lease_until = null, updated_at = t,
       status = case when c.cancel_at is null then 'pending' else 'cancelled' end,
       fence = case when c.cancel_at is not null then c.fence end,
       run_at = t + make_interval(secs => $4::double precision),
       finished_at = case when c.cancel_at is not null then t end,
       expires_at = case when c.cancel_at is not null then t + make_interval(secs => greatest(c.retention, 86400)) end
from   raised
where  c.queue = $1 is true and c.id = $2 and c.fence = $3 and c.status = 'running' and durable is not null
returning c.status, c.attempts;
