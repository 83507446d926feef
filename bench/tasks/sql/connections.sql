-- How many connections the subjects have. $1 their application_name
select count(*) from pg_stat_activity where application_name = $1
