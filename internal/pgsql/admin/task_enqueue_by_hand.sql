-- task_enqueue_by_hand: writes down who has enqueued a task by hand, and why, in the
-- transaction that has.
-- $1 queue  $2 id, as text  $3 actor  $4 reason  $5 kind  $6 key, or null
-- Rows: the line of the audit.
insert into idem.audit (actor, action, scope, key, reason, detail)
values ($3, 'task_enqueue', $1, $2, $4, jsonb_strip_nulls(jsonb_build_object('kind', $5::text, 'task_key', $6::text)))
returning id, at, actor, action, scope, key, reason, detail;
