-- task_expire: done, failed, cancelled -> none
-- Forgets finished tasks whose time is over, so that their keys can be used anew.
-- $1 queue  $2 keys, each once
-- Rows: those forgotten. It locks them in the order of their keys, as task_enqueue does,
-- and checks the time again in the part that deletes; one that is not finished has none.
-- One that was changed while it was waited for is left to the next call. Above read
-- committed, 40001 = another transaction has changed one meanwhile. Key by key and row by
-- row, whatever the planner knows of the table (see take_end).
with asked as materialized (
    select a.task_key from unnest($2::text[]) as a (task_key) order by a.task_key collate "C"
), held as materialized (
    select h.ctid
    from   asked as a cross join lateral (
               select c.ctid, c.id, c.expires_at from idem.tasks as c
               where  c.queue = $1 and c.task_key = a.task_key
               offset 0) as c
    cross  join lateral (
               select h.ctid from idem.tasks as h
               where  h.queue = $1 is true and h.ctid = c.ctid and h.expires_at <= clock_timestamp()
               for    update) as h
    where  c.expires_at <= clock_timestamp()
    and    not exists (select from idem.applied_effects as e
                   where  e.owner_door = 'task' and e.owner_scope = $1 and e.owner_key = c.id::text
                   and    e.status in ('started', 'unknown')
                   offset 0)
)
delete from idem.tasks as c
where  c.queue = $1 is true and c.ctid = any (array(select ctid from held)) and c.expires_at <= clock_timestamp();
