-- effect_read: what has become of an effect.
-- $1 scope  $2 effect_key  $3 the fence of whoever asks, $4 door, $5 scope, $6 key of
-- the claim or the task (its queue and id), or nulls
-- Rows: 0 = nothing; 1 = the effect. theirs: its owner is another claim or task, and lives;
-- calling: the last call may still be under way; within: the window in which the other
-- side honours the key is not over.
select e.status, e.input, e.result, coalesce(e.downstream_key, ''), e.fence, e.calls,
       (e.fence, e.owner_door, e.owner_scope, e.owner_key) is distinct from ($3::uuid, $4::text, $5::text, $6::text)
       and (exists (select from idem.idempotency_keys as k
                    where  k.scope = e.owner_scope and k.key = e.owner_key
                    and    k.fence = e.fence and e.owner_door = 'request'
                    and    k.state = 'claimed' and k.lease_until > clock_timestamp())
         or exists (select from idem.tasks as w
                    where  w.queue = e.owner_scope and w.id = case e.owner_door when 'task' then e.owner_key::bigint end
                    and    w.fence = e.fence and w.status = 'running' and w.lease_until > clock_timestamp())) as theirs,
       coalesce(e.call_until > clock_timestamp(), false) as calling,
       coalesce(e.keyed_until > clock_timestamp(), false) as within
from   idem.applied_effects as e
where  e.scope = $1 and e.effect_key = $2;
