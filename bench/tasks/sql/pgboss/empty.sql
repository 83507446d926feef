truncate pgboss.job cascade
