-- migrate_indexes: finds the orders of a customer without reading them all.
-- Repeating it changes nothing.
create index if not exists orders_customer_id on shop.orders (customer_id)
