-- task_look: what has become of a task, once nobody holds it.
-- $1 queue  $2 id  $3 fence
-- Rows: 0 = it is gone; 1 = its status, whether the fence is its own, how often it was
-- taken, the attempts that it has used, and whether a rescue has left it alone.
select status, fence is not distinct from $3::uuid as mine, takes, attempts, alone
from   idem.tasks
where  queue = $1 is true and id = $2
for    no key update;
