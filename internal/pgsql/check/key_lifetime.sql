-- key_lifetime: an answer ends after it was made, a tombstone after the answer,
-- and none was made in the future (five minutes of grace for a clock set back).
-- Rows: one for each broken row: table, row, detail.
select 'idem.idempotency_keys', scope || ' ' || key,
       'created_at, expires_at and tombstone_until are out of order, or created_at lies in the future'
from   idem.idempotency_keys
where  expires_at <= created_at or tombstone_until <= expires_at
or     created_at > clock_timestamp() + interval '5 minutes';
