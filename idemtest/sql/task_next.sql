-- task_next: which task a test means.
-- $1 queue  $2 kind  $3 key, or null for none  $4 whether any will do
-- Rows: its id; of several the one that a worker takes first. None: there is none.
select c.id
from   idem.tasks as c
where  c.queue = $1 and c.kind = $2 and ($4::boolean or c.task_key is not distinct from $3::text)
order  by c.status <> 'pending', c.priority desc, c.run_at, c.id
limit  1;
