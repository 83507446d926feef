vacuum (analyze) river_job
