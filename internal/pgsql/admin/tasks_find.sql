-- tasks_find: the tasks of one key, in every queue, or the task of one id.
-- $1 key, or null  $2 id, or null  $3 how many at most
-- Rows: one per task, in the queues' order; 0 = there is none. Columns as in tasks_list.
-- Reads the whole index of keys.
select c.id, c.queue, c.kind, coalesce(c.task_key, ''), c.status, c.priority, c.attempts, c.max_attempts, c.takes, c.alone,
       coalesce(c.last_error, ''), octet_length(c.payload)::bigint, coalesce(c.cause_door, ''), coalesce(c.cause_scope, ''),
       coalesce(c.cause_key, ''), c.created_at, c.updated_at, c.run_at, c.lease_until, c.cancel_at, c.finished_at, c.expires_at,
       coalesce(c.lease_until > clock_timestamp(), false) as live, c.run_at <= clock_timestamp() as due,
       coalesce(c.expires_at <= clock_timestamp(), false) as expired,
       exists (select from idem.queues as q where q.queue = c.queue and q.paused_at is not null) as paused,
       (select count(*) from idem.applied_effects as e
        where  e.owner_door = 'task' and e.owner_scope = c.queue and e.owner_key = c.id::text
        and    e.status in ('started', 'unknown')) as unsettled
from   idem.tasks as c
where  c.task_key = $1 or c.id = $2
order  by c.queue, c.id
limit  $3;
