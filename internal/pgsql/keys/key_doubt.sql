-- key_doubt: claimed -> unknown
-- Binds a claimed key whose handler ended the final transaction itself, so that what
-- it committed is never done again. As key_bind.
-- $1 scope  $2 key  $3 fence
-- Rows: 1 = bound; 0 = the lease was lost, or it is no claim any more.
update idem.idempotency_keys
set    state = 'unknown', lease_until = null, expires_at = 'infinity'
from  (select set_config('synchronous_commit',
                         case current_setting('synchronous_commit')
                              when 'remote_apply' then 'remote_apply' else 'on' end, true) as durable) as raised
where  scope = $1 and key = $2
and    fence = $3 and state = 'claimed' and raised.durable is not null;
