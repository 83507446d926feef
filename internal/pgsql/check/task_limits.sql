-- task_limits: a task keeps to the limits of its door: its payload is not over 1 MiB, it
-- is due within the calendar, and its priority, its limit of attempts and its retention
-- are ones that may be asked for. A priority beyond them is never looked at by workers.
-- What is counted leaves room to count on, and its errors are an array: a row of which
-- that is not true stops the statements that look at many.
-- Rows: one for each broken row: table, row, detail.
select 'idem.tasks', queue || ' ' || id,
       'the payload, the due time, the priority, the limit of attempts, the retention or what is counted is out of range, or the errors are no array'
from   idem.tasks
where  octet_length(payload) > 1048576 or priority not between -5 and 5
or     max_attempts not between 1 and 1000 or retention not between 0 and 315360000
or     run_at < '2000-01-01 00:00:00+00' or run_at >= '3000-01-01 00:00:00+00'
or     attempts not between 0 and 1000000 or takes not between 0 and 1000000000 or jsonb_typeof(errors) <> 'array'
or     octet_length(fingerprint) <> 32;
