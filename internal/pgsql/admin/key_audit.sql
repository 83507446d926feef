-- key_audit: what was done to a key by hand, oldest first. What was done to an effect
-- of the same name is not among it: the action says what was changed.
-- $1 scope  $2 key  $3 how many at most
-- Rows: one for each change, the newest of them if there are more.
select id, at, actor, action, scope, key, reason, detail
from  (select id, at, actor, action, scope, key, reason, detail
       from   idem.audit
       where  scope = $1 and key = $2 and starts_with(action, 'key_')
       order  by id desc
       limit  $3) as newest
order  by id;
