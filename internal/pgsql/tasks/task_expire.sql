-- task_expire: done, failed, cancelled -> none
-- Forgets finished tasks whose time is over, so that their keys can be used anew.
-- $1 queue  $2 keys
-- Rows: those forgotten. It locks them in the order of their keys, as task_enqueue does,
-- and checks the time again in the part that deletes. Above read committed, 40001 =
-- another transaction has changed one meanwhile.
with held as materialized (
    select c.id from idem.tasks as c
    where  c.queue = $1 and c.task_key = any ($2::text[])
    and    c.finished_at is not null and c.expires_at <= clock_timestamp()
    order  by c.task_key for update
)
delete from idem.tasks as c
using  held
where  c.queue = $1 and c.id = held.id
and    c.finished_at is not null and c.expires_at <= clock_timestamp()
and    not exists (select from idem.applied_effects as e
                   where  e.owner_door = 'task' and e.owner_scope = $1 and e.owner_key = c.id::text
                   and    e.status in ('started', 'unknown'));
