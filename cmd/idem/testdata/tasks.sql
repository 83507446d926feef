-- Requests and what they have enqueued, and tasks of nobody's, at fixed times. Who has a
-- running one is long gone, or lives until 2999.
insert into idem.idempotency_keys
      (scope, key, fence, state, fingerprint_version, fingerprint,
       response_status, response_headers, response_body, created_at, lease_until, bound, expires_at, committed)
values
      ('alice', 'order-17', '00000000-0000-0000-0000-0000000000b1', 'answered', 1, sha256('order-17'),
       201, array[]::bytea[], '{}', '2026-03-01 10:00:01+00', null, null, '2999-03-04 10:00:00+00', true),
      ('alice', 'refund-17', '00000000-0000-0000-0000-0000000000b2', 'answered', 1, sha256('refund-17'),
       202, array[]::bytea[], '{}', '2026-03-02 10:00:01+00', null, null, '2999-03-05 10:00:00+00', true),
      ('alice', 'refused', '00000000-0000-0000-0000-0000000000b3', 'answered', 1, sha256('refused'),
       409, array[]::bytea[], '{}', '2026-03-03 10:00:01+00', null, null, '2999-03-06 10:00:00+00', false);

insert into idem.tasks
      (id, queue, kind, task_key, payload, status, priority, attempts, takes, alone, max_attempts,
       created_at, updated_at, run_at, fence, lease_until, cancel_at, finished_at, expires_at, last_error, errors,
       cause_door, cause_scope, cause_key)
overriding system value
values
      (101, 'default', 'receipt.send', 'receipt:17', '{"order":17}', 'pending', 0, 2, 3, false, 10,
       '2026-03-01 10:00:00+00', '2026-03-01 10:05:00+00', '2999-01-01 00:00:00+00', null, null, null, null, null, E'no paper\nin tray 2',
       '[{"attempt": 1, "at": "2026-03-01T10:00:02+00:00", "error": "no ink"}, {"attempt": 2, "at": "2026-03-01T10:05:00+00:00", "error": "no paper\nin tray 2"}]',
       'request', 'alice', 'order-17'),
      (102, 'money', 'refund', 'refund:17', '{"payment":17}', 'failed', 3, 1, 1, false, 1,
       '2026-03-02 10:00:00+00', '2026-03-02 10:00:12+00', '2026-03-02 10:00:00+00', '00000000-0000-0000-0000-0000000000c2', null, null,
       '2026-03-02 10:00:12+00', '2999-04-01 10:00:12+00', 'the bank hung up',
       '[{"attempt": 1, "at": "2026-03-02T10:00:12+00:00", "error": "the bank hung up"}]', 'request', 'alice', 'refund-17'),
      (103, 'default', 'mail.send', null, '\x00ff', 'done', 0, 1, 1, false, 10,
       '2026-03-02 10:00:05+00', '2026-03-02 10:00:20+00', '2026-03-02 10:00:05+00', '00000000-0000-0000-0000-0000000000c3', null, null,
       '2026-03-02 10:00:20+00', '2999-03-09 10:00:20+00', null, null, 'task', 'money', '102'),
      (104, 'default', 'report.make', 'report:1', '{"month":2}', 'running', -5, 1, 2, true, 3,
       '2026-03-03 10:00:00+00', '2026-03-03 10:01:00+00', '2026-03-03 10:00:00+00', '00000000-0000-0000-0000-0000000000c4', '2026-03-03 10:01:30+00',
       '2026-03-03 10:01:10+00', null, null, 'worker died',
       '[{"attempt": 1, "at": "2026-03-03T10:00:40+00:00", "error": "worker died"}]', null, null, null),
      (105, 'default', 'report.make', 'report:2', '{"month":3}', 'cancelled', 0, 0, 0, false, 3,
       '2026-03-03 11:00:00+00', '2026-03-03 11:01:00+00', '2026-03-03 11:00:00+00', null, null, null,
       '2026-03-03 11:01:00+00', '2026-03-10 11:01:00+00', null, null, null, null, null),
      (106, 'paused', 'report.make', 'report:3', '{"month":4}', 'pending', 0, 0, 0, false, 3,
       '2026-03-04 11:00:00+00', '2026-03-04 11:00:00+00', '2026-03-04 11:00:00+00', null, null, null,
       null, null, null, null, 'request', 'alice', 'refused'),
      (107, 'money', 'payout', 'payout:1', '{"amount":5}', 'pending', 0, 1, 1, false, 10,
       '2026-03-05 10:00:00+00', '2026-03-05 10:01:00+00', '2026-03-05 10:02:00+00', null, null, null,
       null, null, 'the bank hung up', '[{"attempt": 1, "at": "2026-03-05T10:01:00+00:00", "error": "the bank hung up"}]', null, null, null),
      (108, 'money', 'payout', 'payout:2', '{"amount":6}', 'failed', 0, 10, 10, false, 10,
       '2026-03-06 10:00:00+00', '2026-03-06 10:01:00+00', '2026-03-06 10:00:00+00', '00000000-0000-0000-0000-0000000000c8', null, null,
       '2026-03-06 10:01:00+00', '2999-04-06 10:01:00+00', 'no account', '[{"attempt": 10, "at": "2026-03-06T10:01:00+00:00", "error": "no account"}]', null, null, null);

insert into idem.takes (fence, worker, queue, taken_at, lease_until, started, tasks)
values ('00000000-0000-0000-0000-0000000000c4', '00000000-0000-0000-0000-0000000000d4', 'default', '2026-03-03 10:01:00+00', '2026-03-03 10:01:30+00', 1, '{104}');

insert into idem.queues (queue, paused_at) values ('paused', '2026-03-04 12:00:00+00');

insert into idem.applied_effects
      (scope, effect_key, status, calls, fence, downstream_key, result, last_error,
       created_at, updated_at, intended_at, call_until, keyed_until,
       cause_door, cause_scope, cause_key, owner_door, owner_scope, owner_key)
values
      ('shop', 'refund:payment:17', 'unknown', 1, '00000000-0000-0000-0000-0000000000c2', '17171717-0000-8000-8000-000000000000', null, 'the bank hung up',
       '2026-03-02 10:00:02+00', '2026-03-02 10:00:12+00', '2026-03-02 10:00:02+00', '2026-03-02 10:00:12+00', null,
       'task', 'money', '102', 'task', 'money', '102'),
      ('shop', 'payout:1', 'started', 1, '00000000-0000-0000-0000-0000000000c7', '11110000-0000-8000-8000-000000000000', null, 'the bank hung up',
       '2026-03-05 10:00:02+00', '2026-03-05 10:01:00+00', '2026-03-05 10:00:02+00', '2026-03-05 10:00:12+00', '2999-03-06 10:00:00+00',
       'task', 'money', '107', 'task', 'money', '107'),
      ('shop', 'mail:1', 'applied', 0, null, null, 'null', null,
       '2026-03-02 10:00:19+00', '2026-03-02 10:00:19+00', null, null, null,
       'task', 'default', '103', null, null, null);

insert into idem.audit (at, actor, action, scope, key, reason, detail)
values ('2026-03-03 10:01:10+00', 'carol@desk', 'task_cancel', 'default', '104', 'too slow', '{"status": "running"}'),
       ('2026-03-03 11:01:00+00', 'carol@desk', 'task_cancel', 'default', '105', 'wrong month', '{"status": "pending"}'),
       ('2026-03-03 11:02:00+00', 'carol@desk', 'key_release', 'default', '101', 'a key that has the name of a task', null);

alter sequence idem.tasks_id_seq restart with 201;
