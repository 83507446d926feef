-- queue_pause: nothing is taken from a queue any more; what is running goes on.
-- $1 queue
-- Rows: 1; 0 = it was paused before.
insert into idem.queues as q (queue, paused_at)
values ($1, clock_timestamp())
on conflict (queue) do update set paused_at = excluded.paused_at where q.paused_at is null;
