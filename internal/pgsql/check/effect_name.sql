-- effect_name: every scope and key of an effect is one that Apply and Call let in.
-- Rows: one for each broken row: table, row, detail.
select 'idem.applied_effects', scope || ' ' || effect_key,
       'the key is not 1 to 512 bytes of visible ASCII, or the scope not 1 to 255 bytes'
from   idem.applied_effects
where  octet_length(effect_key) not between 1 and 512 or effect_key !~ '^[\x21-\x7e]+$'
or     octet_length(scope) not between 1 and 255;
