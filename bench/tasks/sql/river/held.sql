select count(*) from river_job where state = 'running'
