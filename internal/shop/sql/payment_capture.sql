-- payment_capture: pending -> captured
-- Captures a payment and posts it, in one statement: neither is there without the
-- other.
-- $1 id  $2 the effect's key
-- Rows: 2, the postings; 0 = it is not pending.
with captured as (
    update shop.payments set status = 'captured'
    where  id = $1 and status = 'pending'
    returning amount
)
insert into shop.postings (effect, account, amount)
select $2, entry.account, entry.sign * captured.amount
from   captured, (values ('cash', 1), ('sales', -1)) as entry (account, sign)
