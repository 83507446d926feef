-- What its maintenance does after 15 minutes.
update pgboss.job set state = 'retry', start_after = now() where state = 'active'
