-- Where the write-ahead log has been written to.
select pg_current_wal_flush_lsn()::text
