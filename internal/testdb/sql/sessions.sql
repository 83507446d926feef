-- How many sessions are in a database.
-- $1 its name
select count(*) from pg_stat_activity where datname = $1
