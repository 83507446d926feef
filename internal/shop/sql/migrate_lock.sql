-- migrate_lock: lets one process at a time make the tables; held to the
-- transaction's end, since "if not exists" alone loses races.
-- Rows: one.
select pg_advisory_xact_lock(hashtextextended('shop.migrate', 0))
