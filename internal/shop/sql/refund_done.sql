-- refund_done: pending -> done
-- Ends a refund that the bank has made and posts it, in one statement: neither is there
-- without the other.
-- $1 id  $2 the effect's key
-- Rows: 2, the postings; 0 = it is not pending.
with ended as (
    update shop.refunds set status = 'done'
    where  id = $1 and status = 'pending'
    returning amount
)
insert into shop.postings (effect, account, amount)
select $2, entry.account, entry.sign * ended.amount
from   ended, (values ('cash', -1), ('sales', 1)) as entry (account, sign)
