-- task_retry_by_hand: failed, cancelled -> pending
-- Gives finished tasks all their attempts again, from now on, and writes down who did it
-- and why, in one statement: neither is there without the other. What their attempts have
-- come to so far is kept, and one that kills workers is taken alone, still. Skips locked
-- rows. Commits by itself, as durable as an answer.
-- $1 ids  $2 actor  $3 reason
-- Rows: the lines of the audit, one for each that is pending now.
with raised as materialized (
    select clock_timestamp() as t,
           set_config('synchronous_commit',
                      case current_setting('synchronous_commit')
                           when 'remote_apply' then 'remote_apply' else 'on' end, true) as durable
), held as materialized (
    select c.id, c.queue, c.status, c.kind, c.task_key, c.attempts, c.max_attempts, c.run_at, c.finished_at, c.last_error, c.cancel_at,
           c.cause_door, c.cause_scope, c.cause_key
    from   idem.tasks as c
    where  c.id = any ($1::bigint[]) and c.status in ('failed', 'cancelled')
    order  by c.id
    for    update skip locked
), retried as (
    update idem.tasks as c
    set    status = 'pending', attempts = 0, fence = null, cancel_at = null, run_at = t, updated_at = t,
           finished_at = null, expires_at = null
    from   held, raised
    where  c.id = held.id and c.status = held.status and durable is not null
    returning c.id
)
insert into idem.audit (actor, action, scope, key, reason, detail)
select $2, 'task_retry', held.queue, held.id::text, $3,
       jsonb_strip_nulls(jsonb_build_object(
           'status', held.status, 'kind', held.kind, 'task_key', held.task_key, 'attempts', held.attempts,
           'max_attempts', held.max_attempts, 'run_at', held.run_at, 'finished_at', held.finished_at,
           'last_error', held.last_error, 'cancel_at', held.cancel_at,
           'cause_door', held.cause_door, 'cause_scope', held.cause_scope, 'cause_key', held.cause_key))
from   retried join held on held.id = retried.id
order  by held.id
returning id, at, actor, action, scope, key, reason, detail;
