select count(*) from idem.tasks where finished_at is null
