-- key_sweep: answered, withheld, tombstone, claimed -> absent
-- Deletes keys whose time is over. Unknown ones never expire, nor does an abandoned
-- claim with an unsettled effect.
-- $1 how many at most
-- Rows: those deleted: for how many seconds their time was over. Skips locked rows, and checks the time again in the
-- statement that deletes, so that a key answered or claimed anew meanwhile stays.
delete from idem.idempotency_keys as k
where  k.ctid = any (array(
           select c.ctid from idem.idempotency_keys as c
           where  c.expires_at <= statement_timestamp()
           and    coalesce(c.tombstone_until, c.expires_at) <= statement_timestamp()
           and    (c.state <> 'claimed' or not exists (
                       select from idem.applied_effects as e
                       where  e.owner_scope = c.scope and e.owner_key = c.key and e.owner_door = 'request'
                       and    e.status in ('started', 'unknown')))
           limit  $1 for update skip locked))
and    coalesce(k.tombstone_until, k.expires_at) <= clock_timestamp()
and    (k.state <> 'claimed' or not exists (
            select from idem.applied_effects as e
            where  e.owner_scope = k.scope and e.owner_key = k.key and e.owner_door = 'request'
            and    e.status in ('started', 'unknown')))
returning extract(epoch from clock_timestamp() - k.expires_at)::float8;
