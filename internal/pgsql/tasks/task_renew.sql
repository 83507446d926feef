-- task_renew: running -> running
-- Renews all leases of a worker in one statement. A row that is locked is skipped: a
-- transaction of its handler's holds it, or somebody who is about to change it; of a take,
-- which is renewed again before its lease is over. A lease
-- that was late is renewed as long as nobody has taken over. Commits by itself; a
-- renewal that is lost is made again.
-- $1 queues  $2 ids  $3 fences  $4 leases in seconds  $5 whether that of the take is, too
-- Rows: the positions, from 1, of those of which the worker must know: lost, the fence is
-- another's or gone; otherwise somebody asks for its cancellation.
with raised as materialized (
    select clock_timestamp() as t,
           set_config('synchronous_commit',
                      case current_setting('synchronous_commit')
                           when 'remote_apply' then 'remote_apply' else 'on' end, true) as durable
), mine as materialized (
    select * from unnest($1::text[], $2::bigint[], $3::uuid[], $4::double precision[], $5::boolean[])
                  with ordinality as m (queue, id, fence, lease, whole, n)
    order by m.id
), held as materialized ( -- task by task, whatever the planner knows of the table (see take_end)
    select c.id, m.queue, m.fence, m.lease
    from   mine as m cross join lateral (
               select c.id from idem.tasks as c
               where  c.queue = m.queue is true and c.id = m.id and c.fence = m.fence and c.status = 'running'
               for    no key update of c skip locked) as c
), renewed as (
    update idem.tasks as c
    set    lease_until = raised.t + make_interval(secs => held.lease)
    from   held, raised
    where  c.queue = held.queue is true and c.id = held.id and c.fence = held.fence
    and    c.id = any (array(select id from held)) and durable is not null
), takes as materialized (
    select k.queue, k.fence, m.lease
    from  (select queue, fence, min(lease) as lease from mine where whole group by queue, fence) as m,
           idem.takes as k
    where  k.queue = m.queue and k.fence = m.fence
    for    no key update of k skip locked
), noted as (
    update idem.takes as k
    set    lease_until = raised.t + make_interval(secs => m.lease)
    from   takes as m, raised
    where  k.queue = m.queue and k.fence = m.fence
)
select m.n, c.id is null as lost
from   mine as m left join lateral (
           select c.id, c.cancel_at from idem.tasks as c
           where  c.queue = m.queue is true and c.id = m.id and c.fence = m.fence and c.status = 'running'
           offset 0) as c on true
where  c.id is null or c.cancel_at is not null;
