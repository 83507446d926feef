-- The handler's one row.
-- $1 customer_id  $2 amount  $3 status
insert into orders(customer_id, amount, status) values ($1, $2, $3)
returning id, customer_id, amount::float8, status
