-- migrate_schema: the schema of the shop's tables. Repeating it changes nothing.
create schema if not exists shop
