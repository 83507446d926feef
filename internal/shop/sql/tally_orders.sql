-- tally_orders: what a range of customers got, behind the guard. An intent is a
-- principal and a customer: a storm gives every intent a customer of its own.
-- $1 the first customer_id  $2 the one after the last
-- Rows: one: the rows, the intents that have one, and the intents that have more.
select coalesce(sum(had.copies), 0)::bigint           as rows,
       count(*)                                       as intents,
       count(*) filter (where had.copies > 1)         as doubled
from  (select count(*) as copies
       from   shop.orders
       where  customer_id >= $1 and customer_id < $2
       group  by principal, customer_id) as had
