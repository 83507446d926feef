-- refund_insert: a new refund of a payment, pending.
-- $1 payment_id  $2 principal  $3 amount in minor units
-- Waits for a transaction that makes another one of the same payment.
-- Rows: one, the refund's id; zero = the payment has one.
insert into shop.refunds (payment_id, principal, amount)
values ($1, $2, $3)
on conflict (payment_id) do nothing
returning id
