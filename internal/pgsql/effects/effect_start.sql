-- effect_start: none -> started
-- Commits the intention of a call, before the call, and binds the claim that makes
-- it, in one statement: neither is there unless the claim holds its key. Commits by
-- itself, as durable as an answer.
-- The claim is kept for as long as the call may take, so that nobody removes it in the
-- moment in which an owner that was long gone wakes up.
-- $1 scope  $2 effect_key  $3 input (SHA-256) or null  $4 downstream_key
-- $5 seconds that the call may take  $6 seconds of the window, or null
-- $7 scope, $8 key, $9 fence and $10 door of the claim or the task (its queue and id)
-- Rows: one. owned: the claim holds its key; started: the intention is new. Not
-- owned: the lease was lost. Owned and not started: see effect_read.
with claimed as materialized (
    select k.fence from idem.idempotency_keys as k
    where  k.scope = $7 and k.key = $8 and k.fence = $9 and k.state = 'claimed' and $10::text = 'request'
    for    no key update
), working as materialized (
    select w.fence from idem.tasks as w
    where  w.queue = $7 and w.id = case $10::text when 'task' then ($8::text)::bigint end
    and    w.fence = $9 and w.status = 'running'
    for    no key update
), owner as materialized (
    select fence from claimed union all select fence from working
), raised as materialized (
    select clock_timestamp() as t,
           set_config('synchronous_commit',
                      case current_setting('synchronous_commit')
                           when 'remote_apply' then 'remote_apply' else 'on' end, true) as durable
), started as (
    insert into idem.applied_effects
          (scope, effect_key, input, downstream_key, status, calls, fence,
           created_at, updated_at, intended_at, call_until, keyed_until,
           cause_door, cause_scope, cause_key, owner_door, owner_scope, owner_key)
    select $1, $2, $3::bytea, $4, 'started', 1, $9,
           t, t, t, t + make_interval(secs => $5::double precision), t + make_interval(secs => $6::double precision),
           $10, $7, $8, $10, $7, $8
    from   owner, raised
    where  durable is not null
    on conflict (scope, effect_key) do nothing
    returning true
), bound as (
    update idem.idempotency_keys as k
    set    bound = true, expires_at = greatest(k.expires_at, raised.t + make_interval(secs => $5::double precision))
    from   claimed, started, raised
    where  k.scope = $7 and k.key = $8 and k.fence = claimed.fence
)
select exists (select from owner) as owned, exists (select from started) as started;
