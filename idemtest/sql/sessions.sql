-- sessions: how many sessions this database has.
-- Rows: one.
select count(*)
from   pg_stat_activity
where  datname = current_database() and backend_type = 'client backend';
