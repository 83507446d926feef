-- oldest_transaction: for how long the oldest transaction in this database has been open,
-- prepared ones too. What is older than it cannot be vacuumed.
-- Rows: one: seconds; 0 if there is none. Without pg_read_all_stats a role sees only the
-- sessions of its own; this one is left out.
select greatest(0,
           (select max(extract(epoch from clock_timestamp() - a.xact_start)) from pg_stat_activity as a
            where  a.datname = current_database() and a.pid <> pg_backend_pid() and a.backend_type = 'client backend'),
           (select max(extract(epoch from clock_timestamp() - p.prepared)) from pg_prepared_xacts as p
            where  p.database = current_database()))::float8;
