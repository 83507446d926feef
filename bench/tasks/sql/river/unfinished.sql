select count(*) from river_job where state <> 'completed'
