-- order_insert: a new order, in the guard's transaction.
-- $1 principal  $2 customer_id  $3 amount in minor units
-- Rows: one, the order as it is answered.
insert into shop.orders (principal, customer_id, amount)
values ($1, $2, $3)
returning id, customer_id, amount, status
