-- key_complete: claimed -> answered
-- Remembers the answer of a request on a lease; in the final transaction, or, where
-- there is none, by itself. As durable as key_answer.
-- $1 scope  $2 key  $3 fence
-- $4 status  $5 headers  $6 body or null  $7 reference or null
-- $8 TTL in seconds  $9 seconds of tombstone after it, or null
-- $10 whether the request's writes are committed with it, or were rolled back
-- Rows: 1; 0 = the lease was lost.
update idem.idempotency_keys
set    state = 'answered', lease_until = null,
       response_status = $4, response_headers = $5, response_body = $6, reference = $7,
       created_at = clock.t, expires_at = clock.t + make_interval(secs => $8::double precision),
       tombstone_until = clock.t + make_interval(secs => $8::double precision + $9::double precision),
       committed = $10
from  (select clock_timestamp() as t,
              set_config('synchronous_commit',
                         case current_setting('synchronous_commit')
                              when 'remote_apply' then 'remote_apply' else 'on' end, true) as durable) as clock
where  scope = $1 and key = $2
and    fence = $3 and state = 'claimed' and clock.durable is not null;
