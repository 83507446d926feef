-- What is remembered of a key.
-- $1 key
select body_hash, response_status, response_body from leases where key = $1
