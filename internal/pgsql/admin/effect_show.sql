-- effect_show: all that is known of one effect.
-- $1 scope  $2 effect key
-- Rows: 0 = there is none; 1 = the effect. Columns as in effects_list, then the
-- result.
select e.scope, e.effect_key, e.status, coalesce(e.downstream_key, ''), e.input, coalesce(octet_length(e.result), 0)::bigint,
       e.calls, coalesce(e.last_error, ''), coalesce(e.cause_door, ''), coalesce(e.cause_scope, ''), coalesce(e.cause_key, ''),
       coalesce(e.owner_door, ''), coalesce(e.owner_scope, ''), coalesce(e.owner_key, ''),
       e.created_at, e.updated_at, e.intended_at, e.call_until, e.keyed_until,
       coalesce(e.call_until > clock_timestamp(), false) as calling,
       coalesce(e.keyed_until > clock_timestamp(), false) as within,
       (exists (select from idem.idempotency_keys as k
                where  k.scope = e.owner_scope and k.key = e.owner_key
                and    k.fence = e.fence and k.state = 'claimed' and k.lease_until > clock_timestamp())
     or exists (select from idem.tasks as w
                where  w.queue = e.owner_scope and w.id = case e.owner_door when 'task' then e.owner_key::bigint end
                and    w.fence = e.fence and w.status = 'running' and w.lease_until > clock_timestamp())) as owned,
       e.result
from   idem.applied_effects as e
where  e.scope = $1 and e.effect_key = $2;
