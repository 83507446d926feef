-- effect_audit: what was done to effects by hand, oldest first.
-- $1 scopes  $2 effect keys  $3 how many at most
-- Rows: one for each change, the newest of them if there are more.
select id, at, actor, action, scope, key, reason, detail
from  (select a.id, a.at, a.actor, a.action, a.scope, a.key, a.reason, a.detail
       from   unnest($1::text[], $2::text[]) as e (scope, key)
       join   idem.audit as a on a.scope = e.scope and a.key = e.key
       where  starts_with(a.action, 'effect_')
       order  by a.id desc
       limit  $3) as newest
order  by id;
