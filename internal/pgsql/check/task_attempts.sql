-- task_attempts: every attempt belongs to a take, so no task has had more of them than it
-- was taken. That it has had no more than max_attempts is not looked at: the limit may
-- have been lowered by hand since.
-- Rows: one for each broken row: table, row, detail.
select 'idem.tasks', queue || ' ' || id,
       'there were ' || attempts || ' attempts, and it was taken ' || takes || ' times'
from   idem.tasks
where  attempts not between 0 and takes;
