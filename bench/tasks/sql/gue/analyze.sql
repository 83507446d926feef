vacuum (analyze) gue_jobs
