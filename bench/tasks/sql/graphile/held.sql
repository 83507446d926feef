select count(*) from graphile_worker._private_jobs where locked_at is not null
