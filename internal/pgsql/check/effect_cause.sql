-- effect_cause: an effect that says what has caused it says all of it: the door, and
-- scope and key there; of a task these are its queue and id. So does one that says who
-- was the last to call it.
-- Rows: one for each broken row: table, row, detail.
select 'idem.applied_effects', scope || ' ' || effect_key,
       'the cause or the owner is not a request or a task with scope and key, nor is there none'
from   idem.applied_effects
where  (cause_door = 'request' and cause_scope <> '' and cause_key <> ''
        or cause_door = 'task' and cause_scope <> '' and cause_key ~ '^[0-9]{1,19}$'
        or num_nonnulls(cause_door, cause_scope, cause_key) = 0) is not true
or     (owner_door = 'request' and owner_scope <> '' and owner_key <> ''
        or owner_door = 'task' and owner_scope <> '' and owner_key ~ '^[0-9]{1,19}$'
        or num_nonnulls(owner_door, owner_scope, owner_key) = 0) is not true;
