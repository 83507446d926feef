-- payment_standing: the payment of an order that is pending or captured.
-- $1 order_id
-- Rows: one; zero = there is none, or it has been declined.
select id, order_id, amount, status, card
from   shop.payments
where  order_id = $1 and status <> 'declined'
