-- payment_decline: pending -> declined
-- $1 id
-- Rows: 1; 0 = it is not pending.
update shop.payments set status = 'declined'
where  id = $1 and status = 'pending'
