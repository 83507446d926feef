-- tally_receipts: what receipts the orders of a range of customers got. An intent is an
-- order.
-- $1 the first customer_id  $2 the one after the last
-- Rows: one: the receipts, the orders that have one, and the orders that have more.
select coalesce(sum(had.copies), 0)::bigint           as rows,
       count(*)                                       as intents,
       count(*) filter (where had.copies > 1)         as doubled
from  (select count(*) as copies
       from   shop.orders as o
       join   shop.receipts as r on r.order_id = o.id
       where  o.customer_id >= $1 and o.customer_id < $2
       group  by o.id) as had
