-- task_limits: a task keeps to the limits of its door: its payload is not over 1 MiB, it
-- is due within the calendar, and its priority, its limit of attempts and its retention
-- are ones that may be asked for. A priority beyond them is never looked at by workers.
-- Rows: one for each broken row: table, row, detail.
select 'idem.tasks', queue || ' ' || id,
       'the payload, the due time, the priority, the limit of attempts or the retention is out of range'
from   idem.tasks
where  octet_length(payload) > 1048576 or priority not between -5 and 5
or     max_attempts not between 1 and 1000 or retention not between 0 and 315360000
or     run_at < '2000-01-01 00:00:00+00' or run_at >= '3000-01-01 00:00:00+00'
or     octet_length(fingerprint) <> 32;
