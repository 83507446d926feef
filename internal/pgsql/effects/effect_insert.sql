-- effect_insert: none -> unknown
-- States, in the caller's transaction and ahead of the effect's own writes, that an
-- effect is being applied: a second transaction waits here for the first, at most 5 s
-- where its transaction has no lock_timeout of its own. The savepoint around it ends
-- with effect_applied, or takes it back. The transaction now commits as durably as an
-- answer.
-- $1 scope  $2 effect_key  $3 input (SHA-256) or null
-- $4 door, $5 scope, $6 key of the cause, or nulls
-- Rows: one. applies: this transaction applies it; otherwise there is one already,
-- see effect_read. A serialization failure (40001) means that it appeared after the
-- snapshot.
with raised as materialized (
    select set_config('synchronous_commit',
                      case current_setting('synchronous_commit')
                           when 'remote_apply' then 'remote_apply' else 'on' end, true) as durable,
           current_setting('lock_timeout') as patience,
           case current_setting('lock_timeout') when '0' then set_config('lock_timeout', '5s', true) end as waits
), inserted as (
    insert into idem.applied_effects
          (scope, effect_key, input, status, created_at, updated_at, cause_door, cause_scope, cause_key)
    select $1, $2, $3::bytea, 'unknown', clock_timestamp(), clock_timestamp(), $4::text, $5::text, $6::text
    from   raised
    where  durable is not null and waits is distinct from ''
    on conflict (scope, effect_key) do nothing
    returning true
)
select applies, set_config('lock_timeout', patience, true)
from  (select exists (select from inserted) as applies, patience from raised offset 0) as done;
