-- order_read: one order of a principal.
-- $1 id  $2 principal
-- Rows: one; zero = there is none, or it is a stranger's.
select id, customer_id, amount, status
from   shop.orders
where  id = $1 and principal = $2
