-- payment_insert: a new payment of an order, pending.
-- $1 order_id  $2 principal  $3 card  $4 amount in minor units
-- Waits for a transaction that makes or declines another one of the same order.
-- Rows: one, the payment's id; zero = the order has one that is not declined.
insert into shop.payments (order_id, principal, card, amount)
values ($1, $2, $3, $4)
on conflict (order_id) where status <> 'declined' do nothing
returning id
