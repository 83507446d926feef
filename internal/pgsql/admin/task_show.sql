-- task_show: all that is known of one task.
-- $1 id
-- Rows: 0 = there is none; 1 = the task. Columns as in tasks_list, then the payload, what
-- its failed attempts have come to, and, of a running one, its take: the worker, since
-- and until when, whether its handler may have been started, and how many tasks it has.
select c.id, c.queue, c.kind, coalesce(c.task_key, ''), c.status, c.priority, c.attempts, c.max_attempts, c.takes, c.alone,
       coalesce(c.last_error, ''), octet_length(c.payload)::bigint, coalesce(c.cause_door, ''), coalesce(c.cause_scope, ''),
       coalesce(c.cause_key, ''), c.created_at, c.updated_at, c.run_at, c.lease_until, c.cancel_at, c.finished_at, c.expires_at,
       coalesce(c.lease_until > clock_timestamp(), false) as live, c.run_at <= clock_timestamp() as due,
       coalesce(c.expires_at <= clock_timestamp(), false) as expired,
       exists (select from idem.queues as q where q.queue = c.queue and q.paused_at is not null) as paused,
       (select count(*) from idem.applied_effects as e
        where  e.owner_door = 'task' and e.owner_scope = c.queue and e.owner_key = c.id::text
        and    e.status in ('started', 'unknown')) as unsettled,
       c.payload, coalesce(c.errors, '[]'), k.worker, k.taken_at, k.lease_until,
       array_position(k.tasks, c.id) <= k.started, cardinality(k.tasks)
from   idem.tasks as c
left   join idem.takes as k on k.fence = c.fence and c.status = 'running'
where  c.id = $1;
