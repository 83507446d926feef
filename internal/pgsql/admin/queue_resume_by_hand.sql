-- queue_resume_by_hand: a queue is taken from again, and it is written down who did it and why.
-- $1 queue  $2 actor  $3 reason
-- Rows: 1 = the line of the audit; 0 = it was not paused.
with resumed as (
    update idem.queues set paused_at = null
    where  queue = $1 and paused_at is not null
    returning queue
)
insert into idem.audit (actor, action, scope, key, reason)
select $2, 'queue_resume', queue, queue, $3
from   resumed
returning id, at, actor, action, scope, key, reason, detail;
