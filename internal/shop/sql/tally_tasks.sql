-- tally_tasks: what has come of the tasks for the orders of a range of customers: their
-- receipts, and the refunds of their payments.
-- $1 the first customer_id  $2 the one after the last
-- Rows: one: the tasks that are done, those that are to come to an end, those that have
-- come to another, and, of all, those that were taken more than once.
with named as (
    select 'receipt:' || o.id as task_key
    from   shop.orders as o
    where  o.customer_id >= $1 and o.customer_id < $2
    union  all
    select 'refund:payment:' || p.id
    from   shop.orders as o
    join   shop.payments as p on p.order_id = o.id
    where  o.customer_id >= $1 and o.customer_id < $2
)
select count(*) filter (where t.status = 'done')                    as done,
       count(*) filter (where t.status in ('pending', 'running'))   as open,
       count(*) filter (where t.status in ('failed', 'cancelled'))  as given_up,
       count(*) filter (where t.takes > 1)                          as again
from   named
join   idem.tasks as t on t.queue = 'shop' and t.task_key = named.task_key
