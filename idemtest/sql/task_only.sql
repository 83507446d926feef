-- task_only: the one task that a worker may take, if it can be taken now.
-- $1 id  $2 how often it may have been taken before, or null for any number
-- $3 the queue that is looked at, $4 for tasks to be taken alone or for the others
-- Rows: its place in the order: priority and due time. None: nothing is to be taken.
select c.priority, c.run_at
from   idem.tasks as c
where  c.id = $1 and c.takes <= coalesce($2::integer, c.takes) and c.queue = $3 and c.alone = $4
and    c.status = 'pending' and c.run_at <= clock_timestamp();
