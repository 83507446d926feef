-- tasks_forget: running -> none
-- Finishes tasks on a lease of which nothing is to be kept, as tasks_done does.
-- $1 queues  $2 ids  $3 fences
-- Rows: the positions, from 1, of those forgotten. Of the others see task_look.
with raised as materialized (
    select clock_timestamp() as t,
           set_config('synchronous_commit',
                      case current_setting('synchronous_commit')
                           when 'remote_apply' then 'remote_apply' else 'on' end, true) as durable
), mine as materialized (
    select * from unnest($1::text[], $2::bigint[], $3::uuid[]) with ordinality as m (queue, id, fence, n)
), held as materialized (
    select c.queue, c.id, c.fence, m.n
    from   mine as m join idem.tasks as c on c.queue = m.queue is true and c.id = m.id
    where  c.fence = m.fence and c.status = 'running'
    order  by c.id
    for    update of c skip locked
)
delete from idem.tasks as c
using  held, raised
where  c.queue = held.queue is true and c.id = held.id and c.fence = held.fence and c.status = 'running' and durable is not null
returning held.n;
