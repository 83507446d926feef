-- refund_read: one refund of a principal.
-- $1 id  $2 principal
-- Rows: one; zero = there is none, or it is a stranger's.
select id, payment_id, amount, status
from   shop.refunds
where  id = $1 and principal = $2
