-- What was done by hand, beside the keys of keys.sql: to a key that is no more and
-- to one that was used again; and a refusal whose time is over.
insert into idem.idempotency_keys
      (scope, key, fence, state, fingerprint_version, fingerprint,
       response_status, response_headers, response_body, created_at, expires_at, committed)
values
      ('dave', 'past', '00000000-0000-0000-0000-000000000009', 'answered', 1, sha256('past'),
       409, array[]::bytea[], 'past', '2026-01-06 12:00:00+00', '2026-01-07 12:00:00+00', false),
      ('dave', 'kept', '00000000-0000-0000-0000-00000000000a', 'answered', 1, sha256('kept'),
       402, array[]::bytea[], 'kept', '2026-01-06 12:00:00+00', '2999-01-07 12:00:00+00', true),
      ('dave', 'older', '00000000-0000-0000-0000-00000000000b', 'answered', 1, sha256('older'),
       409, array[]::bytea[], 'older', '2026-01-06 12:00:00+00', '2999-01-07 12:00:00+00', null);

insert into idem.audit (at, actor, action, scope, key, reason, detail)
values
      ('2026-01-05 09:00:00+00', 'carol@desk', 'key_release', 'alice', 'freed', 'the slot was freed',
       '{"state": "answered", "response_status": 409, "committed": false}'),
      ('2026-01-01 09:00:00+00', 'carol@desk', 'key_release', 'bob', 'order-1', E'wrong \x1b[2Jlimit', null),
      ('2026-01-01 09:30:00+00', 'root@db1', 'key_release', 'bob', 'order-1', 'again', null);
