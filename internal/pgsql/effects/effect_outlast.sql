-- effect_outlast: started -> unknown
-- Finds, at the next call, that the owner of a call has gone and that the call may
-- not be made again: the other side honours no key, or its window is over. Commits by
-- itself, as durable as an answer.
-- $1 scope  $2 effect_key  $3 the fence that the effect has
-- $4 whether the other side is said to honour keys, now
-- Rows: 1; 0 = somebody was first.
update idem.applied_effects
set    status = 'unknown', updated_at = clock_timestamp()
from  (select set_config('synchronous_commit',
                         case current_setting('synchronous_commit')
                              when 'remote_apply' then 'remote_apply' else 'on' end, true) as durable) as raised
where  scope = $1 and effect_key = $2
and    fence = $3 and status = 'started'
and    (not $4::boolean or (keyed_until > clock_timestamp()) is not true) and raised.durable is not null;
