-- effect_status_allowed: every row of idem.applied_effects is one that a status
-- allows. The constraint status_columns refuses others; this finds what came in
-- while it was away.
-- Rows: one for each broken row: table, row, detail.
select 'idem.applied_effects', scope || ' ' || effect_key,
       'status ' || status || ' does not allow the columns that are set'
from   idem.applied_effects
where  (case status
            when 'started' then result is null and fence is not null and downstream_key is not null
                            and intended_at is not null and call_until is not null
            when 'applied' then result is not null
            when 'unknown' then result is null
            when 'absent' then result is null
            else false
        end) is not true;
