-- sweep_lag: for how long the time of the oldest row that a sweep would take has been over.
-- Rows: one for each table: its name, seconds; 0 if nothing is over. No index orders the keys
-- by time (that would cost every request): a table of up to 512 pages is read whole, of a
-- larger one 32 windows of 16 pages at equal distances, so that the lag of the keys is at
-- least what is told. What a sweep leaves, since an effect of it is not settled, does not
-- count; of tasks and takes the 10,000 oldest are looked at.
with pages as (
    select (pg_relation_size('idem.idempotency_keys') / current_setting('block_size')::bigint)::bigint as number
), windows as (
    select (w.i * greatest(16, p.number / 32))::bigint as first
    from   pages as p, generate_series(0, 32 - 1) as w(i)
    where  w.i * greatest(16, p.number / 32) < p.number
)
select 'idempotency_keys' as swept, greatest(0, (
           select max(extract(epoch from clock_timestamp() - o.expires_at))
           from   windows as w,
                  lateral (select min(k.expires_at) as expires_at from idem.idempotency_keys as k
                           where  k.ctid >= format('(%s,0)', w.first)::tid and k.ctid < format('(%s,0)', w.first + 16)::tid
                           and    k.expires_at <= statement_timestamp()
                           and    (k.state <> 'claimed' or not exists (
                                       select from idem.applied_effects as e
                                       where  e.owner_scope = k.scope and e.owner_key = k.key and e.owner_door = 'request'
                                       and    e.status in ('started', 'unknown')))) as o))::float8 as lag
union all
select 'tasks', greatest(0, (
           select extract(epoch from clock_timestamp() - d.expires_at)
           from   (select c.queue, c.id, c.expires_at from idem.tasks as c
                   where  c.finished_at is not null and c.expires_at <= statement_timestamp()
                   order  by c.expires_at limit 10000) as d
           where  not exists (select from idem.applied_effects as e
                              where  e.owner_door = 'task' and e.owner_scope = d.queue and e.owner_key = d.id::text
                              and    e.status in ('started', 'unknown')
                              offset 0)
           order  by d.expires_at limit 1))::float8
union all
select 'takes', greatest(0, (
           select extract(epoch from clock_timestamp() - interval '1 day' - d.lease_until)
           from   (select k.fence, k.tasks, k.lease_until from idem.takes as k
                   where  k.lease_until <= statement_timestamp() - interval '1 day'
                   order  by k.lease_until limit 10000) as d
           where  not exists (select from idem.tasks as c
                              where  c.id = any (d.tasks) and c.fence = d.fence and c.status = 'running'
                              offset 0)
           order  by d.lease_until limit 1))::float8;
