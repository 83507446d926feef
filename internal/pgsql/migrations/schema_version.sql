-- schema_version: the newest migration that this database has.
-- Rows: one; 0 = a schema without migrations. An undefined table or schema means
-- that nothing has been migrated.
select coalesce(max(version), 0)::integer from idem.migrations;
