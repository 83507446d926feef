-- 0006_traces: which request a remembered answer was made by, and in which trace.
-- Why: whoever gets a stored answer asks for the request that made it, in logs by its id
-- and in traces by a link; and a task is worked on in another trace than the one that
-- has enqueued it.
-- Locks: idem.tasks and then idem.idempotency_keys exclusively, each for as long as it
-- takes to wait for the other and to make catalog entries. Each is waited for at most 2 s:
-- what waits behind both waits less than a request waits for a lock.
-- Rows rewritten: none; a null adds nothing to a row. Programs of the version before go
-- on running: they do not name the new columns, which stay null in their rows. A claim
-- on a lease that one of them takes over keeps what it says, which is of the request
-- before.

set local lock_timeout = '2s';

-- No CHECK and no domain: the first would be read anew for every statement, and for the
-- second PostgreSQL before 18 rewrites the table. What is no trace context is ignored.
alter table idem.tasks add column traceparent text;
alter table idem.idempotency_keys add column traceparent text, add column request_id text collate "C";

comment on column idem.idempotency_keys.traceparent is 'The trace context (W3C) of the request that wrote the row; null if it was not traced.';
comment on column idem.idempotency_keys.request_id is 'The id of the request that wrote the row, by which logs know it; null if it had none.';
comment on column idem.tasks.traceparent is 'The trace context (W3C) in which it was enqueued; null if there was none.';

insert into idem.migrations (version, name) values (6, 'traces');
