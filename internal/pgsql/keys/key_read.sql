-- key_read: what is remembered of a key, and whether its time is over by the
-- database's clock.
-- $1 scope  $2 key
-- Rows: 0 = nothing; 1 = the row. over: its time is over, swept or not, and it
-- leaves no tombstone; entombed: its answer's time is over, the key is
-- remembered; live: the lease of a claimed key is not over; bound: an effect of it
-- has started. Last, in one column, the request that wrote the row: its trace context
-- and a space, if it was traced, and its id, if it had one.
select fence, state, fingerprint_version, fingerprint,
       coalesce(response_status, 0), response_headers, response_body, coalesce(reference, ''),
       created_at, expires_at,
       coalesce(tombstone_until, expires_at) <= clock_timestamp()
       and (state <> 'claimed' or not exists (
                select from idem.applied_effects
                where  owner_scope = $1 and owner_key = $2 and owner_door = 'request' and status in ('started', 'unknown'))) as over,
       state = 'tombstone' or expires_at <= clock_timestamp() as entombed,
       coalesce(lease_until > clock_timestamp(), false) as live, coalesce(bound, false),
       coalesce(traceparent || ' ', '') || coalesce(request_id, '') as by
from   idem.idempotency_keys
where  scope = $1 and key = $2;
