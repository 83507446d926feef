-- effects_list: the effects, newest first, without results.
-- $1 scope or null  $2 status or null
-- $3 only effects created before this time, or null; with $4 scope and $5 key also
-- those created at this very time that come after them in the list
-- $6 how many at most
-- Rows: one per effect. calling: the last call may still be under way; within: the
-- window in which the other side honours the key is not over; owned: the claim that
-- has called it holds its key, on a lease that is not over. Reads the whole table.
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
                and    w.fence = e.fence and w.status = 'running' and w.lease_until > clock_timestamp())) as owned
from   idem.applied_effects as e
where  ($1::text is null or e.scope = $1::text)
and    ($2::text is null or e.status = $2::text)
and    ($3::timestamptz is null or e.created_at < $3::timestamptz
        or (e.created_at = $3::timestamptz and (e.scope, e.effect_key) > ($4::text collate "C", $5::text collate "C")))
order  by e.created_at desc, e.scope, e.effect_key
limit  $6;
