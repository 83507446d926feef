-- key_show: all that is remembered of one key, also if its time is over.
-- $1 scope  $2 key
-- Rows: 0 = nothing is remembered; 1 = the key. Columns as in keys_list, then
-- the answer's headers (name, value, ...) and body.
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
       coalesce(request_id, ''), coalesce(traceparent, ''),
       response_headers, response_body
from   idem.idempotency_keys as k
where  scope = $1 and key = $2;
