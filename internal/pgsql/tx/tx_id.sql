-- tx_id: the transaction's id, by which others can ask how it ended.
-- Rows: one.
select pg_current_xact_id()::text;
