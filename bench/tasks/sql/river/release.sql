-- What its rescuer does after an hour.
update river_job set state = 'available', scheduled_at = now() where state = 'running'
