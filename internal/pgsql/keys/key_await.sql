-- key_await: waits for the end of the transaction that holds a claimed key.
-- $1 scope  $2 key  $3 fence
-- Rows: 1 = it is over, and the key is claimed as before; 0 = the key is answered, or
-- another's.
select true
from   idem.idempotency_keys
where  scope = $1 and key = $2
and    fence = $3 and state = 'claimed'
for    update;
