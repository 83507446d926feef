-- key_expire: answered, withheld, tombstone, claimed -> absent
-- Removes a key whose time is over, swept or not, so that its request runs as
-- new; in the transaction of the new claim, before its savepoint, or, on a lease,
-- ahead of the claim. An abandoned claim goes with it unless an effect of it is
-- unsettled; one of which no effect has started, at the end of its lease.
-- $1 scope  $2 key
-- Rows: 0 = it was swept meanwhile; 1 = removed.
delete from idem.idempotency_keys
where  scope = $1 and key = $2
and    (state <> 'claimed' or lease_until <= clock_timestamp())
and    (coalesce(tombstone_until, expires_at) <= clock_timestamp()
        and (state <> 'claimed' or not exists (
                 select from idem.applied_effects
                 where  owner_scope = $1 and owner_key = $2 and owner_door = 'request' and status in ('started', 'unknown')))
        or state = 'claimed' and not bound);
