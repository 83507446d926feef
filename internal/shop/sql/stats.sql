-- stats: how much there is of everything, in one snapshot. A payment counts when it is
-- captured, a refund when it is done.
-- Rows: one.
select (select count(*) from shop.orders)                              as orders,
       (select count(*) from shop.unguarded_orders)                    as unguarded_orders,
       (select count(*) from shop.bookings)                            as bookings,
       (select count(*) from shop.payments where status = 'captured')  as payments,
       (select count(*) from shop.refunds where status = 'done')       as refunds,
       (select count(*) from shop.receipts)                            as receipts
