-- standby_names: whether COMMIT waits for standbys.
-- Rows: one.
select current_setting('synchronous_standby_names') <> '';
