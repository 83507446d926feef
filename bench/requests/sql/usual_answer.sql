-- Keeps the answer, in the transaction of the order.
-- $1 key  $2 status  $3 body
update leases set response_status = $2, response_body = $3 where key = $1
