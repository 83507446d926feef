-- task_look: what has become of a task, once nobody holds it.
-- $1 queue  $2 id  $3 fence
-- Rows: 0 = it is gone; 1 = its status, and whether the fence is its own.
select status, fence is not distinct from $3::uuid as mine
from   idem.tasks
where  queue = $1 and id = $2
for    no key update;
