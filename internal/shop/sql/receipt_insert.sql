-- receipt_insert: sends the receipt of an order, in the transaction of its task.
-- $1 order_id
-- Rows: 1.
insert into shop.receipts (order_id)
values ($1)
