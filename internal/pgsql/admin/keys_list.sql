-- keys_list: what is remembered, newest first, without bodies.
-- $1 scope or null  $2 state or null
-- $3 only keys created before this time, or null; with $4 scope and $5 key also
-- those created at this very time that come after them in the list
-- $6 how many at most
-- Rows: one per key. expires_at null = never; expired: by the database's clock,
-- swept or not; over: expired, and neither a tombstone nor, of an abandoned claim, an
-- unsettled effect is left; live: the lease of a claimed key is not over; lease_until
-- null = its owner has ended it. Reads the whole table: there is no index by creation,
-- since every request would pay for it.
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
where  ($1::text is null or scope = $1::text)
and    ($2::text is null or state = $2::text)
and    ($3::timestamptz is null or created_at < $3::timestamptz
        or (created_at = $3::timestamptz and (scope, key) > ($4::text collate "C", $5::text collate "C")))
order  by created_at desc, scope, key
limit  $6;
