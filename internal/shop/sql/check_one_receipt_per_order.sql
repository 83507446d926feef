-- check_one_receipt_per_order: an order has one receipt at most, and has it if the task
-- that sends it is done.
-- Rows: one for each broken order: table, row, what is wrong.
select 'shop.receipts', order_id::text, format('the order has %s receipts', count(*))
from   shop.receipts
group  by order_id
having count(*) > 1
union  all
select 'shop.receipts', o.id::text, 'the task that sends the receipt is done, and there is none'
from   idem.tasks as t
join   shop.orders as o on t.task_key = 'receipt:' || o.id
where  t.queue = 'shop' and t.kind = 'receipt.send' and t.status = 'done'
and    not exists (select from shop.receipts as r where r.order_id = o.id)
order  by 1, 2, 3
