vacuum (analyze) pgboss.job
