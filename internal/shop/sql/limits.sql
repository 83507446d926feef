-- limits: bounds the transaction that it runs in, whose process may freeze or vanish:
-- what it holds is free again after 5 s of silence.
-- Rows: one.
select set_config('idle_in_transaction_session_timeout', '5s', true),
       set_config('lock_timeout', '5s', true),
       set_config('statement_timeout', '10s', true)
