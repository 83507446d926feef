-- task_status_allowed: every row of idem.tasks is one that a status allows: a pending
-- task belongs to nobody, a running one has a fence and a lease, a finished one has none
-- and says until when it is kept. The constraint status_columns refuses others; this
-- finds what came in while it was away.
-- Rows: one for each broken row: table, row, detail.
select 'idem.tasks', queue || ' ' || id, 'status ' || status || ' does not allow the columns that are set'
from   idem.tasks
where  (case status
            when 'pending' then fence is null and lease_until is null and finished_at is null and expires_at is null
            when 'running' then fence is not null and lease_until is not null and finished_at is null and expires_at is null
            when 'done' then lease_until is null and finished_at is not null and expires_at is not null
            when 'failed' then lease_until is null and finished_at is not null and expires_at is not null and last_error is not null
            when 'cancelled' then lease_until is null and finished_at is not null and expires_at is not null
            else false
        end) is not true;
