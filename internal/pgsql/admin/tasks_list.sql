-- tasks_list: the tasks, newest first, without payloads.
-- $1 queue  $2 kind  $3 statuses  $4 key  $5 door, $6 scope, $7 key of the cause
-- $8 only those created before this time; each null for any
-- $9 only those with a smaller id, or null  $10 how many at most
-- Rows: one per task. live: the lease of a running one is not over; due: it may run now;
-- expired: its time is over; paused: its queue is; unsettled: how many effects that it
-- has called last are. Reads the table from its newest row on, until there are enough; if
-- only failed ones are asked for, no others than those that have failed once
-- (tasks_failed), as long as the statement is planned for that.
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
where  ($1::text is null or c.queue = $1::text)
and    ($2::text is null or c.kind = $2::text)
and    ($3::text[] is null or c.status = any ($3::text[]))
and    ($3::text[] is distinct from '{failed}' or c.finished_at is not null and c.last_error is not null)
and    ($4::text is null or c.task_key = $4::text)
and    ($5::text is null or c.cause_door = $5::text)
and    ($6::text is null or c.cause_scope = $6::text)
and    ($7::text is null or c.cause_key = $7::text)
and    ($8::timestamptz is null or c.created_at < $8::timestamptz)
and    ($9::bigint is null or c.id < $9::bigint)
order  by c.id desc
limit  $10;
