-- tasks_caused: the tasks that an intent has caused, and those that they have, oldest
-- first, without payloads.
-- $1 door  $2 scope  $3 key: of a request; of a task its queue and its id
-- $4 how many at most
-- Rows: one per task, columns as in tasks_list, the oldest of them if there are more.
with recursive caused (id, queue) as (
    select c.id, c.queue from idem.tasks as c
    where  c.cause_scope = $2 and c.cause_key = $3 and c.cause_door = $1
    union
    select c.id, c.queue from caused as p
    join   idem.tasks as c on c.cause_scope = p.queue and c.cause_key = p.id::text and c.cause_door = 'task'
)
select c.id, c.queue, c.kind, coalesce(c.task_key, ''), c.status, c.priority, c.attempts, c.max_attempts, c.takes, c.alone,
       coalesce(c.last_error, ''), octet_length(c.payload)::bigint, coalesce(c.cause_door, ''), coalesce(c.cause_scope, ''),
       coalesce(c.cause_key, ''), c.created_at, c.updated_at, c.run_at, c.lease_until, c.cancel_at, c.finished_at, c.expires_at,
       coalesce(c.lease_until > clock_timestamp(), false) as live, c.run_at <= clock_timestamp() as due,
       coalesce(c.expires_at <= clock_timestamp(), false) as expired,
       exists (select from idem.queues as q where q.queue = c.queue and q.paused_at is not null) as paused,
       (select count(*) from idem.applied_effects as e
        where  e.owner_door = 'task' and e.owner_scope = c.queue and e.owner_key = c.id::text
        and    e.status in ('started', 'unknown')) as unsettled
from   caused join idem.tasks as c on c.id = caused.id
order  by c.id
limit  $4;
