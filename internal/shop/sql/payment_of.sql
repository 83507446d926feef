-- payment_of: one payment of a principal.
-- $1 id  $2 principal
-- Rows: one; zero = there is none, or it is a stranger's.
select id, order_id, amount, status, card
from   shop.payments
where  id = $1 and principal = $2
