-- effect_find_applied: unknown -> applied
-- Settles an effect by evidence that it was done, in a program's Reconcile, and takes
-- it over. Commits by itself, as durable as an answer.
-- $1 scope  $2 effect_key  $3 the fence of the claim that asks  $4 result
-- $5 scope, $6 key and $7 door of the claim, or the task (its queue and id)
-- Rows: 1; 0 = the claim has lost its key, or somebody else has settled it.
with claimed as materialized (
    select k.fence from idem.idempotency_keys as k
    where  k.scope = $5 and k.key = $6 and k.fence = $3 and k.state = 'claimed' and $7::text = 'request'
    for    no key update
), working as materialized (
    select w.fence from idem.tasks as w
    where  w.queue = $5 and w.id = case $7::text when 'task' then ($6::text)::bigint end
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
set    status = 'applied', result = $4, fence = owner.fence, updated_at = clock_timestamp()
from   owner, raised
where  e.scope = $1 and e.effect_key = $2 and e.status = 'unknown' and durable is not null;
