-- key_name: every scope and key is one that a door could have let in.
-- Rows: one for each broken row: table, row, detail.
select 'idem.idempotency_keys', scope || ' ' || key,
       'the key is not 1 to 255 bytes of visible ASCII, or the scope not 1 to 255 bytes'
from   idem.idempotency_keys
where  key !~ '^[\x21-\x7e]{1,255}$' or octet_length(scope) not between 1 and 255;
