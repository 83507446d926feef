select count(*) from gue_jobs
