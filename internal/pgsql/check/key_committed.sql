-- key_committed: a key whose outcome is unknown does not claim to know it.
-- Rows: one for each broken row: table, row, detail.
select 'idem.idempotency_keys', scope || ' ' || key,
       'the state is unknown, and yet committed is ' || committed::text
from   idem.idempotency_keys
where  state = 'unknown' and committed is not null;
