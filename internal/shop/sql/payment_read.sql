-- payment_read: one payment.
-- $1 id
-- Rows: one.
select id, order_id, amount, status, card
from   shop.payments
where  id = $1
