-- tx_limits: the limits of a transaction that is not a request's, so that a
-- frozen process or a vanished host cannot hold locks for ever.
-- $1 statement_timeout  $2 lock_timeout  $3 idle_in_transaction_session_timeout,
-- all in milliseconds, as text
-- Rows: one.
select set_config('statement_timeout', $1, true),
       set_config('lock_timeout', $2, true),
       set_config('idle_in_transaction_session_timeout', $3, true);
