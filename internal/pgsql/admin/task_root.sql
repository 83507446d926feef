-- task_root: where the story of a task begins: its cause, if that is a task the cause of
-- that one, and so on.
-- $1 id
-- Rows: 0 = there is no such task; 1 = the id and the queue of the first task that is still
-- there, and door, scope and key of what has caused that, empty if nothing has.
with recursive causes as (
    select c.id, c.queue, c.cause_door, c.cause_scope, c.cause_key, 1 as depth
    from   idem.tasks as c where c.id = $1
    union  all
    select c.id, c.queue, c.cause_door, c.cause_scope, c.cause_key, p.depth + 1
    from   causes as p
    join   idem.tasks as c on c.queue = p.cause_scope
    and    c.id = case when p.cause_door = 'task' and p.cause_key ~ '^[0-9]{1,18}$' then p.cause_key::bigint end
    where  p.depth < 1000
)
select id, queue, coalesce(cause_door, ''), coalesce(cause_scope, ''), coalesce(cause_key, '')
from   causes
order  by depth desc
limit  1;
