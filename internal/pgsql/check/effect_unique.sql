-- effect_unique: no scope and effect key has two rows, read from the table and not
-- from the index, as key_unique does.
-- Rows: one for each effect with more.
select 'idem.applied_effects', min(scope || ' ' || effect_key), 'the effect has ' || count(calls) || ' rows'
from   idem.applied_effects
group  by scope || '', effect_key || ''
having count(calls) > 1;
