vacuum (analyze) graphile_worker._private_jobs
