-- tx_request_limits: the limits of the transaction of a request without a key;
-- key_claim sets the same for one with a key.
-- $1 statement_timeout  $2 lock_timeout  $3 idle_in_transaction_session_timeout
-- and, from PostgreSQL 17, transaction_timeout; all in milliseconds, as text
-- Rows: one.
select set_config('statement_timeout', $1, true),
       set_config('lock_timeout', $2, true),
       set_config('idle_in_transaction_session_timeout', $3, true),
       case when current_setting('server_version_num')::integer >= 170000
            then set_config('transaction_timeout', $3, true) end;
