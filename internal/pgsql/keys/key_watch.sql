-- key_watch: which of the keys that are in flight elsewhere are worth claiming
-- again: those that have a row whose time is not over, unless it is a claim whose
-- lease is not over; and those without one that no transaction holds the lock of.
-- One statement for all of a process's keys.
-- $1 scopes  $2 keys  $3 locks of the keys, as key_claim's
-- Rows: the positions, from 1, of the keys to claim again.
with held as materialized (
    select classid::bigint << 32 | objid::bigint as lock
    from   pg_locks
    where  locktype = 'advisory' and objsubid = 1 and granted
    and    database = (select oid from pg_database where datname = current_database())
)
select w.n
from   unnest($1::text[], $2::text[], $3::bigint[]) with ordinality as w (scope, key, lock, n)
left   join idem.idempotency_keys as k
       on  k.scope = w.scope and k.key = w.key
       and coalesce(k.tombstone_until, k.expires_at) > clock_timestamp()
where  case when k.key is null then not exists (select from held where held.lock = w.lock)
            else k.state <> 'claimed' or k.lease_until <= clock_timestamp() end;
