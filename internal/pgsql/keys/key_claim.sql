-- key_claim: takes the right to run a key's request and sets the limits of its
-- transaction, in one statement, so that the statement after it (key_read) has a
-- snapshot taken after the locks were granted. The locks only save work: the
-- unique index decides in key_answer.
-- The request's own lock is taken first and shared: whoever holds the key's lock
-- holds its request's lock, too, which is how others tell it from another
-- request (key_rival).
-- $1 lock of the key, $2 lock of the request: 64 bits of a digest of scope and
-- key, and of these and the fingerprint
-- $3 statement_timeout  $4 lock_timeout  $5 idle_in_transaction_session_timeout
-- and, from PostgreSQL 17, transaction_timeout; all in milliseconds, as text
-- Rows: one. claimed is not true: another transaction works on this key.
select case when pg_try_advisory_xact_lock_shared($2) then pg_try_advisory_xact_lock($1) end as claimed,
       set_config('statement_timeout', $3, true),
       set_config('lock_timeout', $4, true),
       set_config('idle_in_transaction_session_timeout', $5, true),
       case when current_setting('server_version_num')::integer >= 170000
            then set_config('transaction_timeout', $5, true) end;
