-- key_lease: a claimed key has a lease and says whether an effect has started, is
-- kept beyond the lease, and is not leased for longer than any route may (10 minutes;
-- five minutes of grace for a clock set back); no other key has a lease.
-- Rows: one for each broken row: table, row, detail.
select 'idem.idempotency_keys', scope || ' ' || key,
       case when state <> 'claimed' then 'the state is ' || state || ', and yet there is a lease'
            else 'the lease of a claimed key is missing, longer than its memory, or too far in the future'
       end
from   idem.idempotency_keys
where  case state
            when 'claimed' then (lease_until is not null and bound is not null and expires_at > lease_until
                                 and lease_until <= clock_timestamp() + interval '15 minutes') is not true
            else lease_until is not null
       end;
