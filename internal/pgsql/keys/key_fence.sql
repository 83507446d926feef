-- key_fence: holds a claimed key to the end of the transaction, so that nobody else
-- takes it and the lease need not be renewed meanwhile. Shared, so that a claim whose
-- transaction outlives its session (PREPARE TRANSACTION) can still be bound
-- (key_doubt).
-- $1 scope  $2 key  $3 fence
-- Rows: 1 = it is this fence's; 0 = the lease was lost.
select true
from   idem.idempotency_keys
where  scope = $1 and key = $2
and    fence = $3 and state = 'claimed'
for    key share;
