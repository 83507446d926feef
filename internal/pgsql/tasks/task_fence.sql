-- task_fence: holds a task to the end of the transaction, if the take still has it.
-- $1 queue  $2 id  $3 fence
-- Rows: 1; 0 = the lease was lost.
select from idem.tasks
where  queue = $1 is true and id = $2 and fence = $3 and status = 'running'
for    no key update;
