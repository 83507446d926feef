-- effect_settle_applied: unknown, started -> applied
-- Settles an effect by a person's decision that it was done, and writes down who made
-- it and why, in one statement: neither is there without the other. A started one only
-- when its owner has gone and the last call can not be under way any more.
-- Without its fence no owner that comes back can record anything. Commits by itself, as
-- durable as an answer.
-- $1 scope  $2 effect key  $3 actor  $4 reason  $5 result
-- $6 how many calls it had when the other side was asked, which may have done a later one,
-- too; 0 = it is not said
-- Rows: 1 = settled: the line of the audit; 0 = it is settled already, in flight, or was
-- called since.
with raised as materialized (
    select set_config('synchronous_commit',
                      case current_setting('synchronous_commit')
                           when 'remote_apply' then 'remote_apply' else 'on' end, true) as durable
), before as materialized (
    select e.status, e.calls, e.downstream_key, e.last_error, e.intended_at, e.call_until, e.keyed_until,
           e.cause_door, e.cause_scope, e.cause_key, e.owner_door, e.owner_scope, e.owner_key
    from   idem.applied_effects as e
    where  e.scope = $1 and e.effect_key = $2 and $6::bigint in (0, e.calls)
    and   (e.status = 'unknown'
           or e.status = 'started' and e.call_until <= clock_timestamp() and not exists (
                select from idem.idempotency_keys as k
                where  k.scope = e.owner_scope and k.key = e.owner_key
                and    k.fence = e.fence and k.state = 'claimed' and k.lease_until > clock_timestamp())
           and not exists (
                select from idem.tasks as w
                where  w.queue = e.owner_scope and w.id = case e.owner_door when 'task' then e.owner_key::bigint end
                and    w.fence = e.fence and w.status = 'running' and w.lease_until > clock_timestamp()))
    for    update
), settled as (
    update idem.applied_effects as e
    set    status = 'applied', result = $5, last_error = null, fence = null, updated_at = clock_timestamp()
    from   before, raised
    where  e.scope = $1 and e.effect_key = $2 and e.status = before.status and durable is not null
    returning e.scope, e.effect_key
)
insert into idem.audit (actor, action, scope, key, reason, detail)
select $3, 'effect_settle', settled.scope, settled.effect_key, $4,
       jsonb_strip_nulls(jsonb_build_object(
           'settled', 'applied', 'status', status, 'calls', calls, 'downstream_key', downstream_key,
           'last_error', last_error, 'intended_at', intended_at, 'call_until', call_until, 'keyed_until', keyed_until,
           'cause_door', cause_door, 'cause_scope', cause_scope, 'cause_key', cause_key,
           'owner_door', owner_door, 'owner_scope', owner_scope, 'owner_key', owner_key))
from   settled, before
returning id, at, actor, action, scope, key, reason, detail;
