-- key_bind: absent -> unknown
-- Binds a key whose handler ended the transaction itself, so that what it
-- committed is never done again: every repeat is outcome-unknown until an
-- operator settles it.
-- $1 scope  $2 key  $3 fence  $4 fingerprint_version  $5 fingerprint
-- $6 trace context and $7 id of the request; empty for none
-- Rows: 1 = bound; 0 = the key has a row already, which says as much.
insert into idem.idempotency_keys (scope, key, fence, state, fingerprint_version, fingerprint, expires_at, traceparent, request_id)
select $1, $2, $3, 'unknown', $4, $5, 'infinity', nullif($6::text, ''), nullif($7::text, '')
from  (select set_config('synchronous_commit',
                         case current_setting('synchronous_commit')
                              when 'remote_apply' then 'remote_apply' else 'on' end, true) as durable) as raised
where  raised.durable is not null
on conflict (scope, key) do nothing;
