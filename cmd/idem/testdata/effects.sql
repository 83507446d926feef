-- Requests on a lease and what they have caused, at fixed times: nobody works on any.
insert into idem.idempotency_keys
      (scope, key, fence, state, fingerprint_version, fingerprint,
       response_status, response_headers, response_body, created_at, lease_until, bound, expires_at, committed)
values
      ('erin', 'resumes', '00000000-0000-0000-0000-0000000000a1', 'claimed', 1, sha256('resumes'),
       null, null, null, '2026-02-01 10:00:00+00', '2026-02-01 10:00:30+00', true, '2999-02-04 10:00:30+00', null),
      ('erin', 'doubtful', '00000000-0000-0000-0000-0000000000a2', 'claimed', 1, sha256('doubtful'),
       null, null, null, '2026-02-02 10:00:00+00', '-infinity', true, '2999-02-05 10:00:30+00', null),
      ('erin', 'left', '00000000-0000-0000-0000-0000000000a3', 'claimed', 1, sha256('left'),
       null, null, null, '2026-02-03 10:00:00+00', '2026-02-03 10:00:30+00', true, '2999-02-06 10:00:30+00', null),
      ('erin', 'gone', '00000000-0000-0000-0000-0000000000a4', 'claimed', 1, sha256('gone'),
       null, null, null, '2026-02-04 10:00:00+00', '2026-02-04 10:00:30+00', false, '2999-02-07 10:00:30+00', null),
      ('erin', 'paid', '00000000-0000-0000-0000-0000000000a5', 'answered', 1, sha256('paid'),
       201, array[]::bytea[], 'paid', '2026-02-05 10:00:01+00', null, true, '2999-02-08 10:00:00+00', true),
      ('erin', 'declined', '00000000-0000-0000-0000-0000000000a6', 'answered', 1, sha256('declined'),
       402, array[]::bytea[], 'declined', '2026-02-06 10:00:01+00', null, true, '2999-02-09 10:00:00+00', false),
      ('erin', 'refused', '00000000-0000-0000-0000-0000000000a7', 'answered', 1, sha256('refused'),
       409, array[]::bytea[], 'refused', '2026-02-07 10:00:01+00', null, true, '2999-02-10 10:00:00+00', false),
      ('erin', 'swept', '00000000-0000-0000-0000-0000000000a8', 'claimed', 1, sha256('swept'),
       null, null, null, '2026-02-08 10:00:00+00', '2026-02-08 10:00:30+00', true, '2026-02-09 10:00:30+00', null);

insert into idem.applied_effects
      (scope, effect_key, status, calls, fence, downstream_key, input, result, last_error,
       created_at, updated_at, intended_at, call_until, keyed_until,
       cause_door, cause_scope, cause_key, owner_door, owner_scope, owner_key)
values
      ('shop', 'charge:payment:1', 'started', 2, '00000000-0000-0000-0000-0000000000a1', '11111111-0000-8000-8000-000000000000',
       sha256('1500'), null, null, '2026-02-01 10:00:01+00', '2026-02-01 10:00:12+00', '2026-02-01 10:00:01+00',
       '2026-02-01 10:00:22+00', '2999-02-02 09:00:01+00', 'request', 'erin', 'resumes', 'request', 'erin', 'resumes'),
      ('shop', 'charge:payment:2', 'unknown', 1, '00000000-0000-0000-0000-0000000000a2', '22222222-0000-8000-8000-000000000000',
       null, null, E'the bank\x1b[2J hung up', '2026-02-02 10:00:02+00', '2026-02-02 10:00:12+00', '2026-02-02 10:00:02+00',
       '2026-02-02 10:00:12+00', null, 'request', 'erin', 'doubtful', 'request', 'erin', 'doubtful'),
      ('shop', 'payment:2', 'applied', 0, null, null,
       null, '{"id":2}', null, '2026-02-02 10:00:01+00', '2026-02-02 10:00:01+00', null,
       null, null, 'request', 'erin', 'doubtful', null, null, null),
      ('shop', 'charge:payment:3', 'started', 1, '00000000-0000-0000-0000-0000000000a3', '33333333-0000-8000-8000-000000000000',
       null, null, null, '2026-02-03 10:00:01+00', '2026-02-03 10:00:01+00', '2026-02-03 10:00:01+00',
       '2026-02-03 10:00:11+00', null, 'request', 'erin', 'left', 'request', 'erin', 'left'),
      ('shop', 'charge:payment:5', 'applied', 1, '00000000-0000-0000-0000-0000000000a5', '55555555-0000-8000-8000-000000000000',
       sha256('1500'), '{"id":"ch_5"}', null, '2026-02-05 10:00:01+00', '2026-02-05 10:00:02+00', '2026-02-05 10:00:01+00',
       '2026-02-05 10:00:11+00', '2026-02-06 09:00:01+00', 'request', 'erin', 'paid', 'request', 'erin', 'paid'),
      ('shop', 'charge:payment:6', 'applied', 1, '00000000-0000-0000-0000-0000000000a6', '66666666-0000-8000-8000-000000000000',
       null, '{"declined":true}', null, '2026-02-06 10:00:01+00', '2026-02-06 10:00:02+00', '2026-02-06 10:00:01+00',
       '2026-02-06 10:00:11+00', '2026-02-07 09:00:01+00', 'request', 'erin', 'declined', 'request', 'erin', 'declined'),
      ('shop', 'charge:payment:7', 'absent', 1, '00000000-0000-0000-0000-0000000000a7', '77777777-0000-8000-8000-000000000000',
       null, null, 'no route to the bank', '2026-02-07 10:00:01+00', '2026-02-07 10:00:02+00', '2026-02-07 10:00:01+00',
       '2026-02-07 10:00:11+00', null, 'request', 'erin', 'refused', 'request', 'erin', 'refused'),
      ('shop', 'charge:payment:9', 'applied', 3, '00000000-0000-0000-0000-0000000000a9', '99999999-0000-8000-8000-000000000000',
       null, '{"id":"ch_9"}', null, '2026-02-09 10:00:01+00', '2026-02-09 10:00:02+00', '2026-02-09 10:00:01+00',
       '2026-02-09 10:00:11+00', '2026-02-10 09:00:01+00', 'request', 'erin', 'sold', 'request', 'frank', 'sold-too'),
      ('books', 'import:1', 'applied', 0, null, null,
       null, 'null', null, '2026-02-10 10:00:01+00', '2026-02-10 10:00:01+00', null,
       null, null, null, null, null, null, null, null);

insert into idem.audit (at, actor, action, scope, key, reason, detail)
values
      ('2026-02-09 11:00:00+00', 'carol@desk', 'effect_settle', 'shop', 'charge:payment:9', 'found in their list, ticket 9',
       '{"settled": "applied", "status": "unknown", "calls": 3}'),
      ('2026-02-09 12:00:00+00', 'carol@desk', 'effect_settle', 'erin', 'gone', 'an effect that has the name of a key', null);
