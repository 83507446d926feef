-- effect_find_absent: unknown -> absent
-- Settles an effect by evidence that it was not done, in a program's Reconcile: only
-- once the last call can not be under way any more. Commits by itself, as durable as
-- an answer.
-- $1 scope  $2 effect_key  $3 the fence of the claim that asks
-- $4 scope, $5 key and $8 door of the claim, or the task (its queue and id)
-- $6 the fence and $7 the number of the call that evidence was asked of, when it could
-- not be under way any more
-- Rows: 1; 0 = the claim has lost its key, or somebody else has settled the effect or
-- called since.
with claimed as materialized (
    select k.fence from idem.idempotency_keys as k
    where  k.scope = $4 and k.key = $5 and k.fence = $3 and k.state = 'claimed' and $8::text = 'request'
    for    no key update
), working as materialized (
    select w.fence from idem.tasks as w
    where  w.queue = $4 and w.id = case $8::text when 'task' then ($5::text)::bigint end
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
set    status = 'absent', fence = owner.fence, updated_at = clock_timestamp()
from   owner, raised
where  e.scope = $1 and e.effect_key = $2 and e.status = 'unknown'
and    e.fence is not distinct from $6::uuid and e.calls = $7::integer
and    (e.call_until <= clock_timestamp()) is not false and durable is not null;
