-- effect_applied: unknown -> applied
-- Records the result of an effect in the transaction of its writes.
-- $1 scope  $2 effect_key  $3 result
-- Rows: 1.
update idem.applied_effects
set    status = 'applied', result = $3, updated_at = clock_timestamp()
where  scope = $1 and effect_key = $2
and    status = 'unknown';
