-- key_withhold: absent -> withheld
-- Remembers that a request was carried out whose answer was too large to store,
-- in the transaction of its writes. As durable as key_answer.
-- $1 scope  $2 key  $3 fence  $4 fingerprint_version  $5 fingerprint
-- $6 status  $7 TTL in seconds  $8 seconds of tombstone after it, or null
-- $9 whether the request's writes are committed with it, or were rolled back
-- $10 its trace context and $11 its id; empty for none
-- Rows: 1. A unique violation means that another claim was first.
insert into idem.idempotency_keys
      (scope, key, fence, state, fingerprint_version, fingerprint, response_status,
       created_at, expires_at, tombstone_until, committed, traceparent, request_id)
select $1, $2, $3, 'withheld', $4, $5, $6,
       clock.t, clock.t + make_interval(secs => $7::double precision), clock.t + make_interval(secs => $7::double precision + $8::double precision), $9,
       nullif($10::text, ''), nullif($11::text, '')
from  (select clock_timestamp() as t,
              set_config('synchronous_commit',
                         case current_setting('synchronous_commit')
                              when 'remote_apply' then 'remote_apply' else 'on' end, true) as durable) as clock
where  clock.durable is not null;
