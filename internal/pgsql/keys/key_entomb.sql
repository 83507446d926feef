-- key_entomb: answered, withheld -> tombstone
-- Strips keys whose answer's time is over but which are remembered longer. Whether
-- their writes were committed stays.
-- $1 how many at most
-- Rows: those stripped. Skips locked rows, and checks the time again in the
-- statement that writes.
update idem.idempotency_keys
set    state = 'tombstone', expires_at = tombstone_until, tombstone_until = null,
       response_status = null, response_headers = null, response_body = null, reference = null,
       traceparent = null, request_id = null
where  ctid = any (array(
           select ctid from idem.idempotency_keys
           where  expires_at <= statement_timestamp() and tombstone_until > statement_timestamp()
           limit  $1 for update skip locked))
and    expires_at <= clock_timestamp() and tombstone_until > clock_timestamp();
