-- refund_fail: pending -> failed
-- $1 id
-- Rows: 1; 0 = it is not pending.
update shop.refunds set status = 'failed'
where  id = $1 and status = 'pending'
