-- tasks_all: how many tasks there are, and the id of the last.
-- Rows: one.
select count(*), coalesce(max(id), 0) from idem.tasks
