-- migrate_receipts_index: finds the receipts of an order. Repeating it changes nothing.
create index if not exists receipts_order_id on shop.receipts (order_id)
