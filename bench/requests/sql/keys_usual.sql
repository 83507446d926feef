-- The bytes of the table of usual leases with its indexes, and the keys that it holds.
select pg_total_relation_size('leases')::float8, count(*)::float8 from leases
