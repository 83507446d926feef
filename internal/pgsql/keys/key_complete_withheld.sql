-- key_complete_withheld: claimed -> withheld
-- Remembers that a request on a lease was carried out whose answer was too large to
-- store. As key_complete.
-- $1 scope  $2 key  $3 fence
-- $4 status  $5 TTL in seconds  $6 seconds of tombstone after it, or null
-- $7 whether the request's writes are committed with it, or were rolled back
-- Rows: 1; 0 = the lease was lost.
update idem.idempotency_keys
set    state = 'withheld', lease_until = null, response_status = $4,
       created_at = clock.t, expires_at = clock.t + make_interval(secs => $5::double precision),
       tombstone_until = clock.t + make_interval(secs => $5::double precision + $6::double precision),
       committed = $7
from  (select clock_timestamp() as t,
              set_config('synchronous_commit',
                         case current_setting('synchronous_commit')
                              when 'remote_apply' then 'remote_apply' else 'on' end, true) as durable) as clock
where  scope = $1 and key = $2
and    fence = $3 and state = 'claimed' and clock.durable is not null;
