-- task_sweep: done, failed, cancelled -> none
-- Deletes finished tasks whose time is over, and their keys with them, but for those that
-- have called an effect last which is unsettled. What has expired first goes first.
-- $1 how many at most
-- Rows: those deleted: for how many seconds their time was over. Skips locked rows, and checks the time again in the statement
-- that deletes; one that is not finished has none. The order is that of the index, which
-- keeps a planner that knows nothing of the table from reading all of it.
delete from idem.tasks as c
where  c.ctid = any (array(
           select d.ctid from idem.tasks as d
           where  d.finished_at is not null and d.expires_at <= statement_timestamp()
           and    not exists (select from idem.applied_effects as e
                              where  e.owner_door = 'task' and e.owner_scope = d.queue and e.owner_key = d.id::text
                              and    e.status in ('started', 'unknown')
                              offset 0)
           order  by d.expires_at
           limit  $1 for update skip locked))
and    c.expires_at <= clock_timestamp()
returning extract(epoch from clock_timestamp() - c.expires_at)::float8;
