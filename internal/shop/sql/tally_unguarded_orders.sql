-- tally_unguarded_orders: what a range of customers got, without the guard.
-- $1 the first customer_id  $2 the one after the last
-- Rows: one: the rows, the intents that have one, and the intents that have more.
select coalesce(sum(had.copies), 0)::bigint           as rows,
       count(*)                                       as intents,
       count(*) filter (where had.copies > 1)         as doubled
from  (select count(*) as copies
       from   shop.unguarded_orders
       where  customer_id >= $1 and customer_id < $2
       group  by principal, customer_id) as had
