select count(*) from graphile_worker._private_jobs
