-- key_owner: who works on a key now: the transaction that holds its lock alone, or
-- that holds the row of a claim, as the final one of a request on a lease does.
-- A repeat of an answered key holds the lock, too, for the moment that it reads.
-- $1 lock of the key, as key_claim's  $2 scope  $3 key
-- Rows: 0 = nobody, as far as locks tell; 1 = the owner. What this role may not
-- see of another's session is empty or null.
select coalesce(l.pid, 0), coalesce(a.application_name, ''), coalesce(host(a.client_addr), ''),
       coalesce(a.state, ''), a.xact_start,
       coalesce(extract(epoch from clock_timestamp() - a.xact_start), 0)::float8
from   pg_locks as l
left   join pg_stat_activity as a on a.pid = l.pid
where  l.granted and l.mode = 'ExclusiveLock'
and    (l.locktype = 'advisory' and l.objsubid = 1
        and l.database = (select oid from pg_database where datname = current_database())
        and (l.classid::bigint << 32 | l.objid::bigint) = $1::bigint
        or l.locktype = 'transactionid'
        and l.transactionid = (select xmax from idem.idempotency_keys
                               where  scope = $2 and key = $3 and state = 'claimed'))
limit  1;
