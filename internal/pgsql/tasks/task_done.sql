-- task_done: running -> done
-- Finishes a task as the last statement of its handler's transaction, under the fence of
-- its take. Fails, so that nothing is committed, if the lease was lost, and if the
-- handler has ended the transaction that the task was started in.
-- $1 queue  $2 id  $3 fence  $4 the mark of the transaction (see task_begin)
-- Rows: one. An error of class 22 (division by zero): refused.
with finished as (
    update idem.tasks
    set    status = 'done', attempts = attempts + 1, lease_until = null, alone = false,
           finished_at = clock_timestamp(), updated_at = clock_timestamp(),
           expires_at = clock_timestamp() + make_interval(secs => retention)
    where  queue = $1 and id = $2 and fence = $3 and status = 'running'
    and    current_setting('idem.task', true) = $4::text
    returning id
)
select 1 / count(*) from finished;
