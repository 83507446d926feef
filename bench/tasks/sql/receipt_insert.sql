-- The handler's one row.
-- $1 task
insert into receipts (task, amount) values ($1, 10)
