-- key_rival: asks, for a key that another transaction works on, whether that is
-- another request. Whoever holds the key's lock shares its request's lock; so if
-- nobody has ours, and the key's lock is taken, the owner works on another
-- request. Ours is taken first, which keeps an owner of our request from
-- appearing; the key's only shared, which cannot pass for an owner.
-- $1 lock of the key, $2 lock of the request, as key_claim's
-- Rows: one. rival = true: the owner works on another request.
select case when pg_try_advisory_xact_lock($2)
            then not pg_try_advisory_xact_lock_shared($1) else false end as rival;
