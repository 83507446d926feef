-- task_index: the unique indexes on (queue, task_key) and on (id) are there and valid.
-- They are the guarantee; everything else only saves work.
-- Rows: one for each that is not.
select 'idem.tasks', u.name,
       'the unique index on (' || array_to_string(u.columns, ', ') || ') is missing or not valid: ' || u.otherwise
from  (values ('tasks_key', array['queue', 'task_key'], 'nothing keeps a task from being enqueued twice'),
              ('tasks_pkey', array['id'], 'nothing tells one task from another'))
       as u (name, columns, otherwise)
where  not exists (
           select from pg_index as i
           where  i.indrelid = 'idem.tasks'::regclass
           and    i.indisunique and i.indisvalid and i.indisready and i.indimmediate
           and    i.indpred is null and i.indexprs is null
           and    (select array_agg(a.attname::text order by a.attname)
                   from   pg_attribute as a
                   where  a.attrelid = i.indrelid and a.attnum = any (i.indkey::smallint[])) = u.columns);
