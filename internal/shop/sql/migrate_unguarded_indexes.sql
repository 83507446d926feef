-- migrate_unguarded_indexes: finds the orders of a customer without reading them
-- all. Repeating it changes nothing.
create index if not exists unguarded_orders_customer_id on shop.unguarded_orders (customer_id)
