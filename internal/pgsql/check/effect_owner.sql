-- effect_owner: somebody has started every effect that is started, and may go on
-- with it: the claim or the task that was the last to call it is still there, in whosever
-- hands and alive or not, since one with an unsettled effect is never swept. And no claim
-- has been answered, and no task is done, over a call of its own that is not settled.
-- Rows: one for each broken row: table, row, detail.
select 'idem.applied_effects', e.scope || ' ' || e.effect_key,
       case when e.owner_door is null then 'the effect is started, and nothing has started it'
            when e.owner_door = 'task' and t.id is null then 'the effect is started, and the task that has called it is not remembered'
            when e.owner_door = 'task' then 'the effect is ' || e.status || ', and the task that has called it is ' || t.status
            when k.key is null then 'the effect is started, and the key that has called it is not remembered'
            else 'the effect is ' || e.status || ', and the claim that has called it ended in state ' || k.state
       end
from   idem.applied_effects as e
left   join idem.idempotency_keys as k
       on  e.owner_door = 'request' and k.scope = e.owner_scope and k.key = e.owner_key
left   join idem.tasks as t
       on  t.queue = e.owner_scope
       and t.id = case when e.owner_door = 'task' and e.owner_key ~ '^[0-9]{1,18}$' then e.owner_key::bigint end
where  e.status = 'started' and (e.owner_door is null or e.owner_door = 'request' and k.key is null
                                 or e.owner_door = 'task' and t.id is null)
or     e.status in ('started', 'unknown') and (k.fence = e.fence and k.state not in ('claimed', 'unknown')
                                               or t.fence = e.fence and t.status = 'done');
