-- key_hold: locks the row of a key that is to be released, so that neither a
-- sweep nor a request removes it or takes it over meanwhile, nor its owner starts an
-- effect, and tells what decides.
-- $1 scope  $2 key
-- Rows: 0 = nothing is remembered; 1 = the row. lock_not_available (55P03) means
-- that somebody is removing it now, or works on it in a transaction.
select fence, state, fingerprint, committed,
       expires_at <= clock_timestamp() as expired,
       coalesce(lease_until > clock_timestamp(), false) as live, coalesce(bound, false)
from   idem.idempotency_keys
where  scope = $1 and key = $2
for    update nowait;
