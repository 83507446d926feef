-- take_end: forgets takes none of whose tasks is running any more.
-- $1 queue  $2 fences
-- Rows: those forgotten. Task by task, and by nothing but its id (what is true is looked
-- for in no index), whatever the planner knows of the table: it may believe that a queue
-- has no tasks, and read all that it has.
delete from idem.takes as k
where  k.queue = $1 and k.fence = any ($2::uuid[])
and    not exists (select from unnest(k.tasks) as u (id) cross join lateral (
                       select from idem.tasks as c
                       where  c.queue = $1 is true and c.id = u.id and c.fence = k.fence and c.status = 'running'
                       offset 0) as c);
