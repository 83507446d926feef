-- 0003_leases: keys that are claimed first, with a lease, by requests whose work
-- leaves the database.
-- Why: the second way. A claimed row says until when its owner is trusted to live
-- (lease_until), and whether an effect of its request has started (bound).
-- Locks: idem.idempotency_keys exclusively, for as long as two catalog entries
-- take; waited for at most 4 s, as in 0002. The new constraint holds for new rows
-- at once; 0004 looks at the old ones, without keeping anybody out.
-- Rows rewritten: none. Programs of the version before go on running, but they do not
-- know the state claimed: put routes on a lease when all of them are gone. Their
-- sweepers would also remove abandoned claims whose effects are unsettled.

set local lock_timeout = '4s';

alter table idem.idempotency_keys add column lease_until timestamptz;
alter table idem.idempotency_keys add column bound boolean;

alter table idem.idempotency_keys drop constraint state_columns;
alter table idem.idempotency_keys add constraint state_columns check (
    case state
        when 'answered' then response_status is not null and response_headers is not null
                         and (response_body is null) <> (reference is null)
                         and lease_until is null
        when 'claimed' then lease_until is not null and bound is not null
                        and response_status is null and response_headers is null
                        and response_body is null and reference is null
                        and tombstone_until is null and committed is null
        when 'withheld' then response_status is not null and response_headers is null
                         and response_body is null and reference is null and lease_until is null
        when 'unknown' then response_status is null and response_headers is null
                        and response_body is null and reference is null and tombstone_until is null
                        and lease_until is null
        when 'tombstone' then response_status is null and response_headers is null
                          and response_body is null and reference is null and tombstone_until is null
                          and lease_until is null
        else false
    end
) not valid;

comment on column idem.idempotency_keys.state is 'claimed: its request works on it, on a lease. answered: replayed until expires_at. withheld: carried out, the answer was too large to store. unknown: an operator must settle it. tombstone: the answer''s time is over, the bare key is remembered.';
comment on column idem.idempotency_keys.lease_until is 'Until when the owner of a claimed key is trusted to live, by this database''s clock. Only another fence says that it has lost the key.';
comment on column idem.idempotency_keys.bound is 'Whether an effect of the request has started, so that the key belongs to this very request for good; null for one that was never on a lease.';

insert into idem.migrations (version, name) values (3, 'leases');
