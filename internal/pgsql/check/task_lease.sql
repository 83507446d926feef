-- task_lease: no running task has a lease that has been over for an hour: any worker of
-- its queue would have found it within two seconds, so there is none, or none can. And
-- none has one for longer than any kind may (24 hours; five minutes of grace for a clock
-- set back).
-- Rows: one for each broken row: table, row, detail.
select 'idem.tasks', queue || ' ' || id,
       case when lease_until > clock_timestamp() then 'the lease of a running task is too far in the future'
            else 'the task is running, and its lease has been over since ' || lease_until || ': no worker of its queue is at work'
       end
from   idem.tasks
where  status = 'running'
and    lease_until not between clock_timestamp() - interval '1 hour' and clock_timestamp() + interval '24 hours 5 minutes';
