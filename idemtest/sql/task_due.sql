-- task_due: makes a task due that waits, and tells the workers.
-- $1 id
-- Rows: 1; 0: it does not wait to be taken.
with due as (
    update idem.tasks
    set    run_at = least(run_at, clock_timestamp())
    where  id = $1 and status = 'pending'
    returning queue
)
select pg_notify('idem_tasks', queue) from due;
