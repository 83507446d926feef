-- tasks_choose: the next ids of tasks that are to be changed by hand.
-- $1 queue  $2 kind  $3 statuses  $4 key  $5 door, $6 scope, $7 key of the cause
-- $8 only those created before this time; each null for any
-- $9 only those with a larger id  $10 and up to this one  $11 how many at most
-- Rows: one per task, in the order of ids. Failed ones are found as in tasks_list.
select c.id
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
and    c.id > $9::bigint and c.id <= $10::bigint
order  by c.id
limit  $11;
