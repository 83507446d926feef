-- The position in the write-ahead log, in bytes.
select (pg_current_wal_insert_lsn() - '0/0')::float8
