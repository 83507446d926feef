-- effect_again: absent -> unknown
-- As effect_insert, for an effect that is known not to be done.
-- $1 scope  $2 effect_key
-- $3 door, $4 scope, $5 key of the cause, or nulls
-- Rows: 1 = this transaction applies it; 0 = somebody was first.
update idem.applied_effects
set    status = 'unknown', updated_at = clock_timestamp(), fence = null,
       owner_door = $3::text, owner_scope = $4::text, owner_key = $5::text
where  scope = $1 and effect_key = $2
and    status = 'absent';
