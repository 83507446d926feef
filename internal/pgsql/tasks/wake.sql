-- wake: tells workers that listen that a queue has tasks to be taken.
-- $1 queue
-- Rows: one.
select pg_notify('idem_tasks', $1);
