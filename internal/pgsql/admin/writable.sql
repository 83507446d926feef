-- writable: whether this database accepts writes.
-- Rows: one. standby: it is in recovery, a standby of another; read_only:
-- transactions are read-only here, on a standby or by a setting.
select pg_is_in_recovery() as standby,
       current_setting('transaction_read_only')::boolean as read_only;
