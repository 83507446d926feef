-- task_name: every queue, kind and key of a task is one that the door lets in.
-- Rows: one for each broken row: table, row, detail.
select 'idem.tasks', queue || ' ' || id,
       'the queue or the kind is not 1 to 128 bytes of visible ASCII, or the key not 1 to 512 bytes of it'
from   idem.tasks
where  octet_length(queue) not between 1 and 128 or queue !~ '^[\x21-\x7e]+$'
or     octet_length(kind) not between 1 and 128 or kind !~ '^[\x21-\x7e]+$'
or     octet_length(task_key) not between 1 and 512 or task_key !~ '^[\x21-\x7e]+$';
