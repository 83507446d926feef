-- task_cause: a task that says what it was enqueued by says all of it: the door, and
-- scope and key there; of a task these are its queue and id.
-- Rows: one for each broken row: table, row, detail.
select 'idem.tasks', queue || ' ' || id, 'the cause is not a request or a task with scope and key, nor is there none'
from   idem.tasks
where  (cause_door = 'request' and cause_scope <> '' and cause_key <> ''
        or cause_door = 'task' and cause_scope <> '' and cause_key ~ '^[0-9]{1,19}$'
        or num_nonnulls(cause_door, cause_scope, cause_key) = 0) is not true;
