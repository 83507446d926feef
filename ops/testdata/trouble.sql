-- What the pages of docs/runbooks name in their commands: a request whose charge is unknown,
-- a task that has failed for good, one that waits, and a queue that is paused.
insert into idem.idempotency_keys
      (scope, key, fence, state, fingerprint_version, fingerprint, lease_until, bound, expires_at)
values
      ('alice', '4f2b4a1a-7f0e-4d1b-9b2e-9a0fb02a1d77', '00000000-0000-0000-0000-0000000000a1', 'claimed', 1,
       sha256('one'), clock_timestamp() - interval '20 minutes', true, clock_timestamp() + interval '3 days');

insert into idem.applied_effects
      (scope, effect_key, status, calls, fence, downstream_key, last_error,
       created_at, updated_at, intended_at, call_until,
       cause_door, cause_scope, cause_key, owner_door, owner_scope, owner_key)
select 'shop', 'charge:payment:17', 'unknown', 1, '00000000-0000-0000-0000-0000000000a1',
       '11111111-0000-8000-8000-000000000000', 'the bank hung up', t.at, t.at, t.at, t.at + interval '10 seconds',
       'request', 'alice', '4f2b4a1a-7f0e-4d1b-9b2e-9a0fb02a1d77', 'request', 'alice', '4f2b4a1a-7f0e-4d1b-9b2e-9a0fb02a1d77'
from   (select clock_timestamp() - interval '21 minutes' as at) as t;

insert into idem.tasks
      (id, queue, kind, task_key, payload, status, attempts, takes, fence, run_at, finished_at, expires_at, last_error, errors)
overriding system value
values
      (4711, 'money', 'refund.pay', 'refund:payment:16', '{"payment":16}', 'failed', 10, 10, '00000000-0000-0000-0000-0000000000b1',
       clock_timestamp() - interval '1 hour', clock_timestamp() - interval '10 minutes', clock_timestamp() + interval '30 days',
       'the bank is closed', '[{"attempt": 10, "at": "2026-03-02T10:00:12+00:00", "error": "the bank is closed"}]'),
      (4712, 'money', 'refund.pay', 'refund:payment:17', '{"payment":17}', 'pending', 0, 0, null,
       clock_timestamp() - interval '10 minutes', null, null, null, null);

insert into idem.queues (queue, paused_at) values ('mail', clock_timestamp() - interval '1 hour');
