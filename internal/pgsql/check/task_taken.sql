-- task_taken: every running task has its take: the row of idem.takes with its fence, in
-- its queue, which names it. Without it nobody would ever find that its worker has died.
-- A take and its tasks are written by one statement, and a take is forgotten only once
-- none of them is running, so no grace is needed.
-- Rows: one for each running task without.
select 'idem.tasks', c.queue || ' ' || c.id,
       case when k.fence is null then 'the task is running, and there is no take of its fence'
            else 'the task is running, and the take of its fence is another queue''s or does not name it'
       end
from   idem.tasks as c
left   join idem.takes as k on k.fence = c.fence
where  c.status = 'running' and (k.queue = c.queue and c.id = any (k.tasks)) is not true;
