-- task_enqueue: none -> pending
-- Enqueues tasks of one kind, unless their queue remembers their keys. Within a
-- caller's transaction they exist only if it commits; whoever has the same key in a
-- transaction that is under way is waited for.
-- $1 queue  $2 kind  $3 keys, each once, or null for none  $4 payloads  $5 fingerprints
-- $6 seconds from now, or null  $7 due times, or null  $8 priorities  $9 limits of attempts
-- $10 retention in seconds  $11 door, $12 scope, $13 key of the cause, or nulls
-- $14 lock_timeout if it commits by itself; null in a caller's transaction
-- $15 the trace context in which it is enqueued, or null
-- Rows: one for each that is new: its position, from 1, and its id. Of the others see
-- task_find. Above read committed, 40001 = a key was remembered by a transaction that
-- this one cannot see. They are inserted in the order of their keys, so that two calls
-- with the same ones wait for each other and do not deadlock.
with raised as materialized (
    select clock_timestamp() as t,
           case when $14::text is null then '' else set_config('lock_timeout', $14::text, true) end as patience,
           set_config('synchronous_commit',
                      case current_setting('synchronous_commit')
                           when 'remote_apply' then 'remote_apply' else 'on' end, true) as durable
), asked as materialized (
    select a.*, nextval('idem.tasks_id_seq') as id
    from   unnest($3::text[], $4::bytea[], $5::bytea[], $6::double precision[], $7::timestamptz[], $8::smallint[], $9::integer[])
           with ordinality as a (task_key, payload, fingerprint, delay, run_at, priority, max_attempts, n)
), enqueued as (
    insert into idem.tasks
          (queue, kind, task_key, id, payload, fingerprint, run_at, priority, max_attempts, retention,
           created_at, updated_at, cause_door, cause_scope, cause_key, traceparent)
    select $1, $2, a.task_key, a.id, a.payload, a.fingerprint,
           coalesce(a.run_at, t + make_interval(secs => coalesce(a.delay, 0))), a.priority, a.max_attempts, $10::integer,
           t, t, $11::text, $12::text, $13::text, $15::text
    from   raised, asked as a
    where  durable is not null and patience is not null
    order  by a.task_key collate "C", a.n
    on conflict (queue, task_key) do nothing
    returning id
)
select a.n, a.id from asked as a join enqueued as e on e.id = a.id;
