-- unsettled: the charges for the orders of a range of customers, and the refunds of them,
-- of which it is not known whether the bank has made them: their effects are started or
-- unknown.
-- $1 the first customer_id  $2 the one after the last
-- Rows: one for each, the oldest payment first: its effect's scope and key, whether it is
-- a refund, whether it is unknown (else started), how often it was called, and whether
-- the last call may be under way.
select e.scope, e.effect_key, named.refund, e.status = 'unknown' as unknown, e.calls,
       (e.call_until <= clock_timestamp()) is false as calling
from   shop.orders as o
join   shop.payments as p on p.order_id = o.id
cross  join lateral (values (false, 'charge:payment:' || p.id), (true, 'refund:payment:' || p.id)) as named (refund, effect_key)
join   idem.applied_effects as e
on     e.scope = 'shop' and e.effect_key = named.effect_key and e.status in ('started', 'unknown')
where  o.customer_id >= $1 and o.customer_id < $2
order  by p.id, named.refund
