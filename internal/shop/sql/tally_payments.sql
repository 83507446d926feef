-- tally_payments: what the orders of a range of customers were paid with, behind the
-- guard. An intent is an order.
-- $1 the first customer_id  $2 the one after the last
-- Rows: one: the captured payments, the orders that have one, and those that have more.
select coalesce(sum(had.copies), 0)::bigint           as rows,
       count(*)                                       as intents,
       count(*) filter (where had.copies > 1)         as doubled
from  (select count(*) as copies
       from   shop.orders as o
       join   shop.payments as p on p.order_id = o.id and p.status = 'captured'
       where  o.customer_id >= $1 and o.customer_id < $2
       group  by o.id) as had
