-- The bytes of the article's table with its indexes, and the keys that it holds.
select pg_total_relation_size('idempotency_keys')::float8, count(*)::float8 from idempotency_keys
