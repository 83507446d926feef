-- effects_unsettled: how many effects nobody knows the outcome of, and nobody is finding out:
-- those that are unknown, and those whose last call is over without a word.
-- Rows: one: their number, 10,000 at most. Reads the index of the unsettled ones, which has few entries.
select count(*)::float8
from   (select from idem.applied_effects as e
        where  e.status in ('started', 'unknown')
        and    (e.status = 'unknown' or e.call_until <= statement_timestamp())
        limit  10000) as u;
