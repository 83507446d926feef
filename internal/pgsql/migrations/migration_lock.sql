-- migration_lock: lets one process at a time migrate; held to the transaction's
-- end. It only saves work: the primary key of idem.migrations is the guarantee.
select pg_advisory_xact_lock(hashtextextended('idem.migrations', 0));
