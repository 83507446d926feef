-- tasks_done: running -> done
-- Finishes tasks on a lease whose handlers have ended, each under the fence of its
-- take. Skips locked rows. Commits by itself, as durable as an answer.
-- $1 queues  $2 ids  $3 fences
-- Rows: the positions, from 1, of those that are done under their fence, now or by an
-- earlier try. Of the others see task_look.
with raised as materialized (
    select clock_timestamp() as t,
           set_config('synchronous_commit',
                      case current_setting('synchronous_commit')
                           when 'remote_apply' then 'remote_apply' else 'on' end, true) as durable
), mine as materialized (
    select * from unnest($1::text[], $2::bigint[], $3::uuid[]) with ordinality as m (queue, id, fence, n) order by m.id
), held as materialized ( -- task by task, whatever the planner knows of the table (see take_end)
    select c.id, m.queue, m.fence, m.n
    from   mine as m cross join lateral (
               select c.id from idem.tasks as c
               where  c.queue = m.queue is true and c.id = m.id and c.fence = m.fence and c.status = 'running'
               for    no key update of c skip locked) as c
), finished as (
    update idem.tasks as c
    set    status = 'done', attempts = least(c.attempts + 1, 1000000), lease_until = null, alone = false,
           finished_at = raised.t, updated_at = raised.t, expires_at = raised.t + make_interval(secs => c.retention)
    from   held, raised
    where  c.queue = held.queue is true and c.id = held.id and c.fence = held.fence
    and    c.id = any (array(select id from held)) and durable is not null
    returning held.n
)
select n from finished
union  all
select m.n from mine as m cross join lateral (
           select from idem.tasks as c
           where  c.queue = m.queue is true and c.id = m.id and c.fence = m.fence and c.status = 'done'
           offset 0) as c;
