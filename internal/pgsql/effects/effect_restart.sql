-- effect_restart: started, absent -> started
-- Commits that a call is to be made again, with the same downstream key: of an
-- effect whose other side honours it and which is within its window, or of one that
-- is known not to be done. Binds the claim that makes it. As effect_start.
-- The claim is kept for as long as the call may take, so that nobody removes it in the
-- moment in which an owner that was long gone wakes up.
-- $1 scope  $2 effect_key  $3 the fence that the effect had, or null
-- $4 downstream_key, for an effect that has none
-- $5 seconds that the call may take  $6 seconds of the window, or null
-- $7 scope, $8 key, $9 fence and $11 door of the claim or the task (its queue and id)
-- $10 how many calls the effect had: this one is the next, and has that number
-- Rows: one. owned: the claim holds its key; restarted: the call may be made. Owned
-- and not restarted: somebody was first, or the window is over; see effect_read.
with claimed as materialized (
    select k.fence from idem.idempotency_keys as k
    where  k.scope = $7 and k.key = $8 and k.fence = $9 and k.state = 'claimed' and $11::text = 'request'
    for    no key update
), working as materialized (
    select w.fence from idem.tasks as w
    where  w.queue = $7 and w.id = case $11::text when 'task' then ($8::text)::bigint end
    and    w.fence = $9 and w.status = 'running'
    for    no key update
), owner as materialized (
    select fence from claimed union all select fence from working
), raised as materialized (
    select clock_timestamp() as t,
           set_config('synchronous_commit',
                      case current_setting('synchronous_commit')
                           when 'remote_apply' then 'remote_apply' else 'on' end, true) as durable
), restarted as (
    update idem.applied_effects as e
    set    status = 'started', fence = $9, calls = e.calls + 1, updated_at = t,
           downstream_key = coalesce(e.downstream_key, $4),
           intended_at = case e.status when 'absent' then t else e.intended_at end,
           keyed_until = case e.status when 'absent' then t + make_interval(secs => $6::double precision) else e.keyed_until end,
           call_until = greatest(case e.status when 'started' then e.call_until end, t + make_interval(secs => $5::double precision)),
           last_error = null,
           owner_door = $11, owner_scope = $7, owner_key = $8
    from   owner, raised
    where  e.scope = $1 and e.effect_key = $2 and e.fence is not distinct from $3::uuid and e.calls = $10::integer
    and    (e.status = 'absent' or e.status = 'started' and e.keyed_until > t)
    and    durable is not null
    returning true
), bound as (
    update idem.idempotency_keys as k
    set    bound = true, expires_at = greatest(k.expires_at, raised.t + make_interval(secs => $5::double precision))
    from   claimed, restarted, raised
    where  k.scope = $7 and k.key = $8 and k.fence = claimed.fence
)
select exists (select from owner) as owned, exists (select from restarted) as restarted;
