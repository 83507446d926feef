-- key_retake: claimed -> claimed
-- Takes over a claim whose lease is over, for the same request, or for any while no
-- effect of it has started. Commits by itself, as durable as key_answer.
-- $1 scope  $2 key  $3 fence  $4 fingerprint_version  $5 fingerprint
-- $6 lease in seconds  $7 TTL in seconds  $8 the fence that the claim had
-- $9 whether the claim's fingerprint is this request's (which may be of an older
-- format)
-- Rows: 1 = taken: whether it is bound. 0 = its owner has renewed the lease or holds
-- the row in a transaction, or somebody else was first.
with free as (
    select scope, key, fence from idem.idempotency_keys
    where  scope = $1 and key = $2
    and    fence = $8::uuid and state = 'claimed' and lease_until <= clock_timestamp()
    and    ($9::boolean or not bound)
    for    update skip locked
), raised as materialized (
    select clock_timestamp() as t,
           set_config('synchronous_commit',
                      case current_setting('synchronous_commit')
                           when 'remote_apply' then 'remote_apply' else 'on' end, true) as durable
)
update idem.idempotency_keys as k
set    fence = $3::uuid, fingerprint_version = $4::smallint, fingerprint = $5::bytea,
       lease_until = t + make_interval(secs => $6::double precision),
       expires_at = t + make_interval(secs => $6::double precision + $7::double precision)
from   free, raised
where  k.scope = free.scope and k.key = free.key and k.fence = free.fence and durable is not null
returning k.bound;
