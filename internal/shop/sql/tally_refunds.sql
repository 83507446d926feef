-- tally_refunds: what was given back of the payments of a range of customers' orders. An
-- intent is a payment.
-- $1 the first customer_id  $2 the one after the last
-- Rows: one: the refunds that are done, the payments that have one, and those that have
-- more.
select coalesce(sum(had.copies), 0)::bigint           as rows,
       count(*)                                       as intents,
       count(*) filter (where had.copies > 1)         as doubled
from  (select count(*) as copies
       from   shop.orders as o
       join   shop.payments as p on p.order_id = o.id
       join   shop.refunds as f on f.payment_id = p.id and f.status = 'done'
       where  o.customer_id >= $1 and o.customer_id < $2
       group  by p.id) as had
