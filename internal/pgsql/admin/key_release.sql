-- key_release: answered, claimed -> absent
-- Forgets a remembered refusal, or a claim whose owner has gone, so that its request
-- runs as new, and writes down who did it and why, in one statement: neither is there
-- without the other. What committed something, or may have, is never forgotten by it,
-- nor what has an effect that is not known to be absent, or had one that was called
-- under another key since; nor what has caused a task that is not over, is done, or has
-- such an effect. As durable as key_answer.
-- $1 scope  $2 key  $3 fence  $4 actor  $5 reason
-- Rows: 1 = released: the line of the audit; 0 = nothing that may be released is
-- remembered under that fence any more.
with recursive raised as materialized (
    select set_config('synchronous_commit',
                      case current_setting('synchronous_commit')
                           when 'remote_apply' then 'remote_apply' else 'on' end, true) as durable
), caused (id, queue, status) as (
    select c.id, c.queue, c.status from idem.tasks as c
    where  c.cause_scope = $1 and c.cause_key = $2 and c.cause_door = 'request'
    union
    select c.id, c.queue, c.status from caused as p
    join   idem.tasks as c on c.cause_scope = p.queue and c.cause_key = p.id::text and c.cause_door = 'task'
), released as (
    delete from idem.idempotency_keys
    where  scope = $1 and key = $2 and fence = $3
    and    (state = 'answered' and not committed and expires_at > clock_timestamp()
            or state = 'claimed' and lease_until <= clock_timestamp())
    and    not exists (
               select from idem.applied_effects
               where  (cause_scope = $1 and cause_key = $2 and cause_door = 'request'
                       or owner_scope = $1 and owner_key = $2 and owner_door = 'request')
               and    status <> 'absent')
    and    (state <> 'claimed' or not bound or exists (
               select from idem.applied_effects
               where  cause_scope = $1 and cause_key = $2 and cause_door = 'request'
               or     owner_scope = $1 and owner_key = $2 and owner_door = 'request'))
    and    not exists (
               select from caused
               where  caused.status not in ('failed', 'cancelled')
               or     exists (select from idem.applied_effects as e
                              where  (e.cause_scope = caused.queue and e.cause_key = caused.id::text and e.cause_door = 'task'
                                      or e.owner_scope = caused.queue and e.owner_key = caused.id::text and e.owner_door = 'task')
                              and    e.status <> 'absent'))
    and    (select durable from raised) is not null
    returning scope, key, state, response_status, committed, lease_until, bound, created_at, expires_at,
              fingerprint_version, fingerprint
)
insert into idem.audit (actor, action, scope, key, reason, detail)
select $4, 'key_release', scope, key, $5,
       jsonb_strip_nulls(jsonb_build_object(
           'state', state, 'response_status', response_status, 'committed', committed,
           'lease_until', lease_until, 'bound', case state when 'claimed' then bound end,
           'created_at', created_at, 'expires_at', expires_at,
           'fingerprint_version', fingerprint_version, 'fingerprint', encode(fingerprint, 'hex')))
from   released
returning id, at, actor, action, scope, key, reason, detail;
