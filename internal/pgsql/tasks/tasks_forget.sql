-- tasks_forget: running -> none
-- Finishes tasks on a lease of which nothing is to be kept, as tasks_done does.
-- $1 queues  $2 ids  $3 fences
-- Rows: the positions, from 1, of those forgotten. Of the others see task_look.
with raised as materialized (
    select set_config('synchronous_commit',
                      case current_setting('synchronous_commit')
                           when 'remote_apply' then 'remote_apply' else 'on' end, true) as durable
), mine as materialized (
    select * from unnest($1::text[], $2::bigint[], $3::uuid[]) with ordinality as m (queue, id, fence, n) order by m.id
), held as materialized ( -- task by task, whatever the planner knows of the table (see take_end)
    select c.id, m.queue, m.fence, m.n
    from   mine as m cross join lateral (
               select c.id from idem.tasks as c
               where  c.queue = m.queue is true and c.id = m.id and c.fence = m.fence and c.status = 'running'
               for    update of c skip locked) as c
)
delete from idem.tasks as c
using  held, raised
where  c.queue = held.queue is true and c.id = held.id and c.fence = held.fence
and    c.id = any (array(select id from held)) and durable is not null
returning held.n;
