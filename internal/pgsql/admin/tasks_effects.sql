-- tasks_effects: the effects that tasks have caused, or were the last to call, oldest
-- first, without results.
-- $1 queues  $2 ids, as text  $3 how many at most
-- Rows: one per effect, columns as in effects_list, the oldest of them if there are
-- more.
with tasks as (
    select * from unnest($1::text[], $2::text[]) as w (queue, id)
), found as (
    select e.scope, e.effect_key from tasks as w
    join   idem.applied_effects as e on e.cause_scope = w.queue and e.cause_key = w.id and e.cause_door = 'task'
    union
    select e.scope, e.effect_key from tasks as w
    join   idem.applied_effects as e on e.owner_scope = w.queue and e.owner_key = w.id and e.owner_door = 'task'
)
select e.scope, e.effect_key, e.status, coalesce(e.downstream_key, ''), e.input, coalesce(octet_length(e.result), 0)::bigint,
       e.calls, coalesce(e.last_error, ''), coalesce(e.cause_door, ''), coalesce(e.cause_scope, ''), coalesce(e.cause_key, ''),
       coalesce(e.owner_door, ''), coalesce(e.owner_scope, ''), coalesce(e.owner_key, ''),
       e.created_at, e.updated_at, e.intended_at, e.call_until, e.keyed_until,
       coalesce(e.call_until > clock_timestamp(), false) as calling,
       coalesce(e.keyed_until > clock_timestamp(), false) as within,
       (exists (select from idem.idempotency_keys as k
                where  k.scope = e.owner_scope and k.key = e.owner_key
                and    k.fence = e.fence and k.state = 'claimed' and k.lease_until > clock_timestamp())
     or exists (select from idem.tasks as w
                where  w.queue = e.owner_scope and w.id = case e.owner_door when 'task' then e.owner_key::bigint end
                and    w.fence = e.fence and w.status = 'running' and w.lease_until > clock_timestamp())) as owned
from   found join idem.applied_effects as e on e.scope = found.scope and e.effect_key = found.effect_key
order  by e.created_at, e.scope, e.effect_key
limit  $3;
