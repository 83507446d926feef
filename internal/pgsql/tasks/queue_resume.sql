-- queue_resume: a queue is taken from again.
-- $1 queue
-- Rows: 1; 0 = it was not paused.
update idem.queues set paused_at = null where queue = $1 and paused_at is not null;
