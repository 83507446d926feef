-- migrate_payments_index: one payment per order that is not declined; this index is
-- what keeps two keys from paying one order twice. Repeating it changes nothing.
create unique index if not exists one_payment_per_order on shop.payments (order_id)
    where status <> 'declined'
