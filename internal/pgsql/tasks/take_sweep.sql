-- take_sweep: forgets takes that nobody has ended and nobody looks at any more: their
-- leases have been over for a day, and none of their tasks is running under them.
-- $1 how many at most
-- Rows: those forgotten: for how many seconds their time was over. Skips locked rows, and checks the lease again in the statement
-- that deletes. That no task is running under a fence stays true: none is used again.
delete from idem.takes as k
where  k.ctid = any (array(
           select d.ctid from idem.takes as d
           where  d.lease_until <= statement_timestamp() - interval '1 day'
           and    not exists (select from idem.tasks as c
                              where  c.id = any (d.tasks) and c.fence = d.fence and c.status = 'running')
           limit  $1 for update skip locked))
and    k.lease_until <= clock_timestamp() - interval '1 day'
returning extract(epoch from clock_timestamp() - k.lease_until - interval '1 day')::float8;
