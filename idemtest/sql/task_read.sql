-- task_read: where a task stands.
-- $1 id
-- Rows: one; none: it was done, and nothing of it is kept. wait: seconds until it is due.
-- unknown: nobody knows whether an effect that it called has happened.
select c.id, c.queue, c.kind, coalesce(c.task_key, ''), c.payload, c.status, c.attempts, c.takes,
       coalesce(c.last_error, ''), greatest(extract(epoch from c.run_at - clock_timestamp()), 0)::double precision as wait,
       exists (select from idem.queues as q where q.queue = c.queue and q.paused_at is not null) as paused,
       exists (select from idem.applied_effects as e
               where  e.owner_door = 'task' and e.owner_scope = c.queue and e.owner_key = c.id::text
               and    e.status = 'unknown') as unknown
from   idem.tasks as c
where  c.id = $1;
