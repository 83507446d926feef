-- key_abandon: claimed -> claimed
-- Ends the lease of a claim and leaves it, with what its effects have come to, to the
-- next retry. No renewal brings it back, also not one that is on its way: key_renew
-- passes over the time that is written here. Commits by itself.
-- $1 scope  $2 key  $3 fence  $4 TTL in seconds
-- Rows: 1 = ended; 0 = the lease was lost.
update idem.idempotency_keys
set    lease_until = '-infinity',
       expires_at = clock_timestamp() + make_interval(secs => $4::double precision)
where  scope = $1 and key = $2
and    fence = $3 and state = 'claimed';
