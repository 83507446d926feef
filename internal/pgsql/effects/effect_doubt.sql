-- effect_doubt: started -> unknown
-- Records that nobody knows what a call has come to: it is never made again by itself.
-- Commits by itself, as durable as an answer.
-- $1 scope  $2 effect_key  $3 the fence of the call  $4 why, or null to keep what is known
-- $5 scope, $6 key and $8 door of the claim, or the task (its queue and id), which has
-- the same fence  $7 the call's number
-- Rows: 1; 0 = the claim has lost its key, or another has called since.
with claimed as materialized (
    select k.fence from idem.idempotency_keys as k
    where  k.scope = $5 and k.key = $6 and k.fence = $3 and k.state = 'claimed' and $8::text = 'request'
    for    no key update
), working as materialized (
    select w.fence from idem.tasks as w
    where  w.queue = $5 and w.id = case $8::text when 'task' then ($6::text)::bigint end
    and    w.fence = $3 and w.status = 'running'
    for    no key update
), owner as materialized (
    select fence from claimed union all select fence from working
), raised as materialized (
    select set_config('synchronous_commit',
                      case current_setting('synchronous_commit')
                           when 'remote_apply' then 'remote_apply' else 'on' end, true) as durable
)
update idem.applied_effects as e
set    status = 'unknown', last_error = coalesce($4, e.last_error), updated_at = clock_timestamp()
from   owner, raised
where  e.scope = $1 and e.effect_key = $2 and e.fence = owner.fence and e.calls = $7::integer
and    e.owner_door = $8 and e.owner_scope = $5 and e.owner_key = $6
and    e.status = 'started' and durable is not null;
