-- Makes the handler slow, in its transaction.
-- $1 seconds
select pg_sleep($1)
