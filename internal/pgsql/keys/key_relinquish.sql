-- key_relinquish: claimed -> absent
-- Gives back a claimed key of which no effect has started: it is free. Commits by
-- itself.
-- $1 scope  $2 key  $3 fence
-- Rows: 1 = free; 0 = it is bound, or the lease was lost.
delete from idem.idempotency_keys
where  scope = $1 and key = $2
and    fence = $3 and state = 'claimed' and not bound;
