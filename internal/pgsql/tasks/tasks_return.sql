-- tasks_return: running -> pending, cancelled
-- Gives tasks back that a worker has taken and does not finish: it shuts down. No
-- attempt is counted. Commits by itself, as durable as an answer.
-- $1 queues  $2 ids  $3 fences
-- Rows: those given back.
with raised as materialized (
    select clock_timestamp() as t,
           set_config('synchronous_commit',
                      case current_setting('synchronous_commit')
                           when 'remote_apply' then 'remote_apply' else 'on' end, true) as durable
), mine as materialized (
    select * from unnest($1::text[], $2::bigint[], $3::uuid[]) as m (queue, id, fence) order by m.id
), held as materialized ( -- task by task, whatever the planner knows of the table (see take_end)
    select c.id, m.queue, m.fence
    from   mine as m cross join lateral (
               select c.id from idem.tasks as c
               where  c.queue = m.queue is true and c.id = m.id and c.fence = m.fence and c.status = 'running'
               for    no key update of c) as c
)
update idem.tasks as c
set    status = case when c.cancel_at is null then 'pending' else 'cancelled' end,
       fence = case when c.cancel_at is not null then c.fence end,
       lease_until = null, updated_at = t,
       finished_at = case when c.cancel_at is not null then t end,
       expires_at = case when c.cancel_at is not null then t + make_interval(secs => greatest(c.retention, 86400)) end
from   held, raised
where  c.queue = held.queue is true and c.id = held.id and c.fence = held.fence
and    c.id = any (array(select id from held)) and durable is not null;
