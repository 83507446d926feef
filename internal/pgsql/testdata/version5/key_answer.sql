-- key_answer: absent -> answered
-- Remembers an answer, in the transaction of its writes. The unique index is the
-- guarantee: a unique violation on idempotency_keys_pkey means that another
-- claim was first, and undoes everything. The answer outlives a crash whatever
-- the session says: synchronous_commit is raised to on, a higher setting stays.
-- $1 scope  $2 key  $3 fence  $4 fingerprint_version  $5 fingerprint
-- $6 status  $7 headers  $8 body or null  $9 reference or null
-- $10 TTL in seconds  $11 seconds of tombstone after it, or null
-- $12 whether the request's writes are committed with it, or were rolled back
-- Rows: 1.
insert into idem.idempotency_keys
      (scope, key, fence, state, fingerprint_version, fingerprint,
       response_status, response_headers, response_body, reference,
       created_at, expires_at, tombstone_until, committed)
select $1, $2, $3, 'answered', $4, $5,
       $6, $7, $8, $9,
       clock.t, clock.t + make_interval(secs => $10::double precision), clock.t + make_interval(secs => $10::double precision + $11::double precision), $12
from  (select clock_timestamp() as t,
              set_config('synchronous_commit',
                         case current_setting('synchronous_commit')
                              when 'remote_apply' then 'remote_apply' else 'on' end, true) as durable) as clock
where  clock.durable is not null;
