-- quiet: whether nothing runs in this database but this statement, nor is in the
-- middle of a transaction.
-- Rows: one.
select not exists (
    select from pg_stat_activity
    where  datname = current_database() and pid <> pg_backend_pid()
    and    backend_type = 'client backend' and state not in ('idle', 'disabled'));
