-- key_bound: claimed -> claimed
-- Binds a claimed key to its request, in the transaction of an effect that is applied
-- before the final one, and holds it as key_fence does. Meanwhile the lease cannot be
-- renewed, so it is held for its whole length from now on. So that a frozen process
-- does not hold the key for ever, a transaction without a limit of its own gets one of
-- 35 s for being idle.
-- $1 scope  $2 key  $3 fence  $4 lease in seconds
-- Rows: 1 = it is this fence's; 0 = the lease was lost.
update idem.idempotency_keys
set    bound = true, lease_until = greatest(lease_until, clock_timestamp() + make_interval(secs => $4::double precision)),
       expires_at = greatest(expires_at, clock_timestamp() + make_interval(secs => $4::double precision))
from  (select case current_setting('idle_in_transaction_session_timeout')
                   when '0' then set_config('idle_in_transaction_session_timeout', '35s', true) else '' end as limited) as limits
where  scope = $1 and key = $2
and    fence = $3 and state = 'claimed' and limits.limited is not null;
