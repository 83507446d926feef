truncate gue_jobs
