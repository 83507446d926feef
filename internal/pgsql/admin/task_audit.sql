-- task_audit: what was done to tasks by hand, oldest first.
-- $1 queues  $2 ids, as text  $3 how many at most
-- Rows: one for each change, the newest of them if there are more.
select id, at, actor, action, scope, key, reason, detail
from  (select a.id, a.at, a.actor, a.action, a.scope, a.key, a.reason, a.detail
       from   unnest($1::text[], $2::text[]) as w (queue, id)
       join   idem.audit as a on a.scope = w.queue and a.key = w.id
       where  starts_with(a.action, 'task_')
       order  by a.id desc
       limit  $3) as newest
order  by id;
