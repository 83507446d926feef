-- queue_pause_by_hand: nothing is taken from a queue any more, and it is written down who did it and why.
-- What is running goes on.
-- $1 queue  $2 actor  $3 reason
-- Rows: 1 = the line of the audit; 0 = it was paused before.
with paused as (
    insert into idem.queues (queue, paused_at)
    values ($1, clock_timestamp())
    on conflict (queue) do update set paused_at = excluded.paused_at where idem.queues.paused_at is null
    returning queue
)
insert into idem.audit (actor, action, scope, key, reason)
select $2, 'queue_pause', queue, queue, $3
from   paused
returning id, at, actor, action, scope, key, reason, detail;
