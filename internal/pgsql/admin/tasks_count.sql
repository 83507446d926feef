-- tasks_count: how many tasks there are, and up to which: what comes later is not meant.
-- $1 queue  $2 kind  $3 statuses  $4 key  $5 door, $6 scope, $7 key of the cause
-- $8 only those created before this time; each null for any
-- Rows: one: their number, and the largest id; 0 and 0 = there is none. Reads the whole
-- table; failed ones are found as in tasks_list.
select count(*), coalesce(max(c.id), 0)
from   idem.tasks as c
where  ($1::text is null or c.queue = $1::text)
and    ($2::text is null or c.kind = $2::text)
and    ($3::text[] is null or c.status = any ($3::text[]))
and    ($3::text[] is distinct from '{failed}' or c.finished_at is not null and c.last_error is not null)
and    ($4::text is null or c.task_key = $4::text)
and    ($5::text is null or c.cause_door = $5::text)
and    ($6::text is null or c.cause_scope = $6::text)
and    ($7::text is null or c.cause_key = $7::text)
and    ($8::timestamptz is null or c.created_at < $8::timestamptz);
