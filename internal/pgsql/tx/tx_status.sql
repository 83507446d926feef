-- tx_status: how a transaction ended (pg_xact_status).
-- $1 id, as text
-- Rows: one: in progress, committed, aborted; null if it is too long ago.
select pg_xact_status($1::text::xid8);
