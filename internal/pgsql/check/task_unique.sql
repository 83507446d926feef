-- task_unique: no queue and key has two rows, read from the table and not from the
-- index, as key_unique does. Any number may have no key.
-- Rows: one for each key with more.
select 'idem.tasks', min(queue || ' ' || task_key), 'the key has ' || count(kind) || ' rows'
from   idem.tasks
where  task_key is not null
group  by queue || '', task_key || ''
having count(kind) > 1;
