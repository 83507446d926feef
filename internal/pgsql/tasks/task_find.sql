-- task_find: what a queue remembers of keys.
-- $1 queue  $2 keys, each once
-- Rows: one for each key that it knows. over: the task's time is over, and its key
-- with it, unless it has called an effect last which is unsettled. Key by key, whatever
-- the planner knows of the table.
select c.task_key, c.id, c.status, c.kind, c.payload, c.fingerprint,
       coalesce(c.expires_at <= clock_timestamp(), false)
       and not exists (select from idem.applied_effects as e
                       where  e.owner_door = 'task' and e.owner_scope = $1 and e.owner_key = c.id::text
                       and    e.status in ('started', 'unknown')
                       offset 0) as over
from   unnest($2::text[]) as a (task_key) cross join lateral (
           select c.task_key, c.id, c.status, c.kind, c.payload, c.fingerprint, c.expires_at from idem.tasks as c
           where  c.queue = $1 and c.task_key = a.task_key
           offset 0) as c;
