-- tasks_held: what a queue holds, in words.
-- $1 queue
-- Rows: one.
select coalesce(string_agg(format('%s %s (%s)', n, kind, status), ', ' order by kind, status), 'nothing')
from  (select kind, status, count(*) as n from idem.tasks where queue = $1 group by kind, status) as held;
