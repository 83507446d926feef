-- Keys of every state, at fixed times: those of "soon" are over.
insert into idem.idempotency_keys
      (scope, key, fence, state, fingerprint_version, fingerprint,
       response_status, response_headers, response_body, reference, created_at, expires_at, tombstone_until, committed)
values
      ('alice', 'order-1', '00000000-0000-0000-0000-000000000001', 'answered', 1, sha256('order-1'),
       201, array['Content-Type', 'application/json', 'Location', '/orders/1']::bytea[], '{"id":1,"amount":1500}', null,
       '2026-01-01 10:00:00.000001+00', '2999-01-08 10:00:00+00', null, true),
      ('bob', 'order-1', '00000000-0000-0000-0000-000000000002', 'answered', 1, sha256('order-1'),
       409, array['Content-Type', 'text/plain']::bytea[], '\x00ff1b5b324a', null,
       '2026-01-01 10:00:00.000001+00', '2999-01-08 10:00:00+00', null, false),
      ('alice', 'report', '00000000-0000-0000-0000-000000000003', 'answered', 2, sha256('report'),
       200, array[]::bytea[], null, 'reports/7',
       '2026-01-02 10:00:00+00', '2999-01-09 10:00:00+00', '2999-04-09 10:00:00+00', true),
      ('alice', 'export', '00000000-0000-0000-0000-000000000004', 'withheld', 1, sha256('export'),
       200, null, null, null, '2026-01-03 10:00:00+00', '2999-01-10 10:00:00+00', null, true),
      ('carol', 'charge', '00000000-0000-0000-0000-000000000005', 'unknown', 1, sha256('charge'),
       null, null, null, null, '2026-01-04 10:00:00+00', 'infinity', null, null),
      ('carol', 'refund', '00000000-0000-0000-0000-000000000006', 'tombstone', 1, sha256('refund'),
       null, null, null, null, '2026-01-05 10:00:00+00', '2999-04-05 10:00:00+00', null, true),
      (E'mal\x1b[2Jlory', 'a,b"c', '00000000-0000-0000-0000-000000000007', 'answered', 3, sha256('soon'),
       204, array[]::bytea[], '', null, '2026-01-06 10:00:00+00', '2026-01-07 10:00:00+00', null, true),
      ('alice', 'late', '00000000-0000-0000-0000-000000000008', 'answered', 1, sha256('late'),
       200, array[]::bytea[], 'late', null, '2026-01-06 11:00:00+00', '2026-01-07 11:00:00+00', '2999-01-07 11:00:00+00', null);

-- The requests that made them, in logs and traces.
update idem.idempotency_keys set request_id = 'req-17', traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
where  scope = 'alice' and key = 'order-1';
