select count(*) from idem.tasks where status = 'running'
