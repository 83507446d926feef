-- The bytes of Idem's table with its indexes, and the keys that it holds.
select pg_total_relation_size('idem.idempotency_keys')::float8, count(*)::float8 from idem.idempotency_keys
