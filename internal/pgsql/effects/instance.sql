-- instance: the random id of this database.
-- Rows: one.
select id from idem.instance;
