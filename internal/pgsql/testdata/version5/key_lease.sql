-- key_lease: absent -> claimed
-- Claims a key on a lease, or tells what is remembered of it, in one statement that
-- commits by itself. The unique index decides. As durable as key_answer.
-- $1 scope  $2 key  $3 fence  $4 fingerprint_version  $5 fingerprint
-- $6 lease in seconds  $7 TTL in seconds: an abandoned claim is kept that long
-- after its last lease
-- Rows: one. claimed: the key is this fence's. Otherwise the row that was found,
-- columns as in key_read; without one (a null fence) another claim came between
-- the statement's snapshot and its insert, or its transaction is still open: ask
-- again. A row that is there is not waited for, whoever writes to it.
with raised as materialized (
    select clock_timestamp() as t,
           set_config('synchronous_commit',
                      case current_setting('synchronous_commit')
                           when 'remote_apply' then 'remote_apply' else 'on' end, true) as durable
), claimed as (
    insert into idem.idempotency_keys
          (scope, key, fence, state, fingerprint_version, fingerprint,
           created_at, lease_until, bound, expires_at)
    select $1, $2, $3::uuid, 'claimed', $4::smallint, $5::bytea,
           t, t + make_interval(secs => $6::double precision), false,
           t + make_interval(secs => $6::double precision + $7::double precision)
    from   raised
    where  durable is not null
    and    not exists (select from idem.idempotency_keys where scope = $1 and key = $2)
    on conflict (scope, key) do nothing
    returning true as claimed
)
select exists (select from claimed) as claimed,
       k.fence, k.state, k.fingerprint_version, k.fingerprint,
       coalesce(k.response_status, 0), k.response_headers, k.response_body, coalesce(k.reference, ''),
       k.created_at, k.expires_at,
       coalesce(k.tombstone_until, k.expires_at) <= clock_timestamp()
       and (k.state <> 'claimed' or not exists (
                select from idem.applied_effects
                where  owner_scope = $1 and owner_key = $2 and owner_door = 'request' and status in ('started', 'unknown'))) as over,
       k.state = 'tombstone' or k.expires_at <= clock_timestamp() as entombed,
       coalesce(k.lease_until > clock_timestamp(), false) as live, coalesce(k.bound, false)
from  (select) as one
left   join (select * from idem.idempotency_keys where scope = $1 and key = $2) as k on true;
