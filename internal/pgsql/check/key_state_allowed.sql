-- key_state_allowed: every row of idem.idempotency_keys is one that a state
-- allows. The constraint state_columns refuses others; this finds what came in
-- while it was away.
-- Rows: one for each broken row: table, row, detail.
select 'idem.idempotency_keys', scope || ' ' || key,
       'state ' || state || ' does not allow the columns that are set'
from   idem.idempotency_keys
where  (case state
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
        end) is not true;
