select count(*) from pgboss.job where state = 'active'
