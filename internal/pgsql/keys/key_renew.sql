-- key_renew: claimed -> claimed
-- Renews all leases of a process in one statement. A row that is locked is skipped:
-- a transaction of its owner's holds it, or somebody who is about to learn whether
-- it is free. A lease that was late is renewed as long as nobody has taken over; one
-- that was ended (key_abandon) is not. Commits by itself; a renewal that is lost is
-- made again.
-- $1 scopes  $2 keys  $3 fences, as text  $4 leases in seconds  $5 TTLs in seconds
-- Rows: the positions, from 1, of those that have lost the key: another fence has
-- it, or it is no claim any more.
with mine as materialized (
    select * from unnest($1::text[], $2::text[], $3::text[]::uuid[], $4::double precision[], $5::double precision[])
                  with ordinality as m (scope, key, fence, lease, ttl, n)
), held as (
    select k.scope, k.key, k.fence, m.lease, m.ttl
    from   mine as m join idem.idempotency_keys as k on k.scope = m.scope and k.key = m.key
    where  k.fence = m.fence and k.state = 'claimed' and k.lease_until > '-infinity'
    for    update of k skip locked
), renewed as (
    update idem.idempotency_keys as k
    set    lease_until = clock_timestamp() + make_interval(secs => held.lease),
           expires_at = clock_timestamp() + make_interval(secs => held.lease + held.ttl)
    from   held
    where  k.scope = held.scope and k.key = held.key and k.fence = held.fence
)
select m.n
from   mine as m
where  not exists (select from idem.idempotency_keys as k
                   where  k.scope = m.scope and k.key = m.key
                   and    k.fence = m.fence and k.state = 'claimed');
