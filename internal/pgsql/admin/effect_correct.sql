-- effect_correct: applied -> applied
-- Gives an effect that a person has settled as applied another result, for one that the
-- program cannot read, and writes down who did it and why. What a call or a transaction
-- has recorded is not a person's to change. Commits by itself, as durable as an answer.
-- $1 scope  $2 effect key  $3 actor  $4 reason  $5 result
-- $6 how many calls it has; 0 = it is not said
-- Rows: 1 = corrected: the line of the audit; 0 = no person has settled it as applied, or
-- it has other calls.
with raised as materialized (
    select set_config('synchronous_commit',
                      case current_setting('synchronous_commit')
                           when 'remote_apply' then 'remote_apply' else 'on' end, true) as durable
), corrected as (
    update idem.applied_effects as e
    set    result = $5, updated_at = clock_timestamp()
    from   raised
    where  e.scope = $1 and e.effect_key = $2 and $6::bigint in (0, e.calls) and durable is not null
    and    e.status = 'applied' and e.fence is null and e.intended_at is not null
    returning e.scope, e.effect_key, e.status, e.calls, e.downstream_key, e.intended_at, e.call_until, e.keyed_until,
              e.cause_door, e.cause_scope, e.cause_key, e.owner_door, e.owner_scope, e.owner_key
)
insert into idem.audit (actor, action, scope, key, reason, detail)
select $3, 'effect_settle', scope, effect_key, $4,
       jsonb_strip_nulls(jsonb_build_object(
           'settled', 'applied', 'status', status, 'calls', calls, 'downstream_key', downstream_key,
           'intended_at', intended_at, 'call_until', call_until, 'keyed_until', keyed_until,
           'cause_door', cause_door, 'cause_scope', cause_scope, 'cause_key', cause_key,
           'owner_door', owner_door, 'owner_scope', owner_scope, 'owner_key', owner_key))
from   corrected
returning id, at, actor, action, scope, key, reason, detail;
