-- order_insert_unguarded: a new order, whoever sent it and however often.
-- $1 principal  $2 customer_id  $3 amount in minor units
-- Rows: one, the order as it is answered.
insert into shop.unguarded_orders (principal, customer_id, amount)
values ($1, $2, $3)
returning id, customer_id, amount, status
