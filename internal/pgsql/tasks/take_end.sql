-- take_end: forgets takes none of whose tasks is running any more.
-- $1 queue  $2 fences
-- Rows: those forgotten.
delete from idem.takes as k
where  k.queue = $1 and k.fence = any ($2::uuid[])
and    not exists (select from idem.tasks as c
                   where  c.queue = $1 and c.id = any (k.tasks) and c.fence = k.fence and c.status = 'running');
