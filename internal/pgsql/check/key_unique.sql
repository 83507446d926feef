-- key_unique: no scope and key has two rows, read from the table and not from
-- the index: what is grouped is not what the index orders, and what is counted
-- is not in it, so that a duplicate which the index does not know is seen.
-- Rows: one for each key with more.
select 'idem.idempotency_keys', min(scope || ' ' || key), 'the key has ' || count(fence) || ' rows'
from   idem.idempotency_keys
group  by scope || '', key || ''
having count(fence) > 1;
