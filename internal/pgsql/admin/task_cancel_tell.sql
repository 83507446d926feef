-- task_cancel_tell: tells the workers that listen that the cancellation of a running task
-- is asked for. The others see it when they renew their leases.
-- Rows: one.
select pg_notify('idem_cancel', '');
