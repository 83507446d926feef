-- key_scopes: the scopes that remember a key, in which something was done to it by
-- hand, or whose key of that name has caused a task, or caused or called an effect.
-- $1 key  $2 how many at most
-- Rows: one per scope, in order; 0 = it is not known at all. Reads the whole
-- index of keys, the tasks, the effects and the audit.
select scope from idem.idempotency_keys where key = $1
union
select scope from idem.audit where key = $1 and starts_with(action, 'key_')
union
select cause_scope from idem.tasks where cause_key = $1 and cause_door = 'request'
union
select cause_scope from idem.applied_effects where cause_key = $1 and cause_door = 'request'
union
select owner_scope from idem.applied_effects where owner_key = $1 and owner_door = 'request'
order  by scope
limit  $2;
