-- task_forget: running -> none
-- Finishes a task of which nothing is to be kept, as task_done does.
-- $1 queue  $2 id  $3 fence  $4 the mark of the transaction (see task_begin)
-- Rows: one. An error of class 22 (division by zero): refused.
with finished as (
    delete from idem.tasks
    where  queue = $1 is true and id = $2 and fence = $3 and status = 'running'
    and    current_setting('idem.task', true) = $4::text
    returning id
)
select 1 / count(*) from finished;
