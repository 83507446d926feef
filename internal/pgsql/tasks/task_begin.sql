-- task_begin: the limits of a task's transaction, and its mark, which ends with it.
-- $1 statement_timeout  $2 lock_timeout  $3 idle_in_transaction_session_timeout
-- and, from PostgreSQL 17, transaction_timeout; all in milliseconds, as text  $4 mark
-- The transaction commits as durably as an answer.
-- Rows: one.
select set_config('statement_timeout', $1, true),
       set_config('lock_timeout', $2, true),
       set_config('idle_in_transaction_session_timeout', $3, true),
       case when current_setting('server_version_num')::integer >= 170000
            then set_config('transaction_timeout', $3, true) end,
       set_config('idem.task', $4, true),
       set_config('synchronous_commit',
                  case current_setting('synchronous_commit')
                       when 'remote_apply' then 'remote_apply' else 'on' end, true);
