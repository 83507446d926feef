-- task_done: running -> done
-- Finishes a task as the last statement of its handler's transaction, under the fence of
-- its take. Fails, so that nothing is committed, if the lease was lost, and if the
-- handler has ended the transaction that the task was started in.
-- $1 queue  $2 id  $3 fence  $4 the mark of the transaction (see task_begin)
-- Rows: one. An error of class 22 (division by zero): refused.
with finished as (
    update idem.tasks as c
    set    status = 'done', attempts = least(c.attempts + 1, 1000000), lease_until = null, alone = false,
           finished_at = t, updated_at = t, expires_at = t + make_interval(secs => c.retention)
    from   (select clock_timestamp() as t) as raised -- once
    where  c.queue = $1 is true and c.id = $2 and c.fence = $3 and c.status = 'running'
    and    current_setting('idem.task', true) = $4::text
    returning c.id
)
select 1 / count(*) from finished;
