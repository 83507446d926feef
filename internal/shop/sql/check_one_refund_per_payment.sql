-- check_one_refund_per_payment: a payment has one refund at most, of its whole amount,
-- and is captured then; a refund that is done was made by the bank, once, and is posted
-- once, with its amount; one that has failed was declined by the bank, and it is not
-- posted, nor is a pending one; and no effect or posting of a refund is without it.
-- Rows: one for each broken row: table, row, what is wrong.
with returned as (
    select substr(effect_key, length('refund:payment:') + 1) as payment, status,
           convert_from(result, 'UTF8')::jsonb ->> 'status' as came_to
    from   idem.applied_effects
    where  scope = 'shop' and starts_with(effect_key, 'refund:payment:')
), posted as (
    select substr(effect, length('post:refund:payment:') + 1) as payment,
           coalesce(sum(amount) filter (where account = 'cash'), 0) as cash,
           coalesce(sum(amount) filter (where account = 'sales'), 0) as sales,
           count(*) as postings
    from   shop.postings
    where  starts_with(effect, 'post:refund:payment:')
    group  by effect
), found as (
    select f.payment_id::text as payment, f.status, f.amount, p.amount as paid, p.status as payment_status,
           coalesce(e.status, 'missing') as effect, coalesce(e.came_to, 'nothing') as came_to,
           coalesce(x.postings, 0) as postings, coalesce(x.cash, 0) as cash, coalesce(x.sales, 0) as sales
    from   shop.refunds as f
    join   shop.payments as p on p.id = f.payment_id
    left   join returned as e on e.payment = f.payment_id::text
    left   join posted as x on x.payment = f.payment_id::text
)
select 'shop.refunds', payment, format('the payment has %s refunds', count(*))
from   found
group  by payment
having count(*) > 1
union  all
select 'shop.refunds', payment, format('it is of %s, of a payment of %s that is %s', amount, paid, payment_status)
from   found
where  payment_status <> 'captured' or amount <> paid
union  all
select 'shop.refunds', payment, format('it is %s, but its effect is %s and has come to %s', status, effect, came_to)
from   found
where  status in ('done', 'failed')
and   (effect <> 'applied' or came_to <> case status when 'done' then 'refunded' else 'declined' end)
union  all
select 'shop.refunds', payment,
       format('it is %s with the amount %s, but posted to %s accounts: %s to cash, %s to sales', status, amount, postings, cash, sales)
from   found
where  status = 'done' and (postings <> 2 or cash <> -amount or sales <> amount)
or     status <> 'done' and postings <> 0
union  all
select 'idem.applied_effects', 'shop refund:payment:' || e.payment, 'there is no such refund'
from   returned as e
where  not exists (select from shop.refunds as f where f.payment_id::text = e.payment)
union  all
select 'shop.postings', 'post:refund:payment:' || x.payment, 'there is no such refund'
from   posted as x
where  not exists (select from shop.refunds as f where f.payment_id::text = x.payment)
order  by 1, 2, 3
