-- keys_find: one key in every scope that has it, without bodies.
-- $1 key  $2 how many at most
-- Rows: one per scope, in the scopes' order; 0 = no scope remembers the key.
-- Columns as in keys_list. Reads the whole index: its first column is the scope.
select scope, key, state, fingerprint_version, fingerprint,
       coalesce(response_status, 0), coalesce(octet_length(response_body), 0)::bigint, coalesce(reference, ''),
       created_at, nullif(expires_at, 'infinity'), tombstone_until,
       expires_at <= clock_timestamp() as expired,
       coalesce(tombstone_until, expires_at) <= clock_timestamp()
       and (state <> 'claimed' or not exists (
                select from idem.applied_effects as e
                where  e.owner_scope = k.scope and e.owner_key = k.key and e.owner_door = 'request'
                and    e.status in ('started', 'unknown'))) as over,
       committed, nullif(lease_until, '-infinity'), coalesce(lease_until > clock_timestamp(), false) as live, bound, fence,
       coalesce(request_id, ''), coalesce(traceparent, '')
from   idem.idempotency_keys as k
where  key = $1
order  by scope
limit  $2;
