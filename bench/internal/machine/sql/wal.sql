-- What the write-ahead log between $1 and $2 holds, by kind of record.
-- Rows: kind, how many, bytes; most bytes first.
select "resource_manager/record_type", count, combined_size
from   pg_get_wal_stats($1::pg_lsn, $2::pg_lsn, true)
where  combined_size > 0
order  by combined_size desc
