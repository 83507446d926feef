-- check_one_charge_per_payment: a captured payment has one charge, which was captured,
-- and is posted once, with its amount; a declined one has neither charge nor posting;
-- a pending one has no posting; and no charge or posting is without its payment.
-- Rows: one for each broken row: table, row, what is wrong.
with charge as (
    select substr(effect_key, length('charge:payment:') + 1) as payment, status,
           convert_from(result, 'UTF8')::jsonb ->> 'status' as came_to
    from   idem.applied_effects
    where  scope = 'shop' and starts_with(effect_key, 'charge:payment:')
), posted as (
    select substr(effect, length('post:payment:') + 1) as payment,
           coalesce(sum(amount) filter (where account = 'cash'), 0) as cash,
           coalesce(sum(amount) filter (where account = 'sales'), 0) as sales,
           count(*) as postings
    from   shop.postings
    where  starts_with(effect, 'post:payment:')
    group  by effect
), found as (
    select p.id::text as payment, p.status, p.amount,
           coalesce(c.status, 'missing') as charge, coalesce(c.came_to, 'nothing') as came_to,
           coalesce(x.postings, 0) as postings, coalesce(x.cash, 0) as cash, coalesce(x.sales, 0) as sales
    from   shop.payments as p
    left   join charge as c on c.payment = p.id::text
    left   join posted as x on x.payment = p.id::text
)
select 'shop.payments', payment, format('it is %s, but its charge is %s and has come to %s', status, charge, came_to)
from   found
where  status in ('captured', 'declined') and (charge <> 'applied' or came_to <> status)
union  all
select 'shop.payments', payment,
       format('it is %s with the amount %s, but posted to %s accounts: %s to cash, %s to sales', status, amount, postings, cash, sales)
from   found
where  status = 'captured' and (postings <> 2 or cash <> amount or sales <> -amount)
or     status <> 'captured' and postings <> 0
union  all
select 'idem.applied_effects', 'shop charge:payment:' || c.payment, 'there is no such payment'
from   charge as c
where  not exists (select from shop.payments as p where p.id::text = c.payment)
union  all
select 'shop.postings', 'post:payment:' || x.payment, 'there is no such payment'
from   posted as x
where  not exists (select from shop.payments as p where p.id::text = x.payment)
order  by 1, 2, 3
