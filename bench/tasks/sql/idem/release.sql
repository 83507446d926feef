-- Lets the leases of dead workers end now.
with takes as (update idem.takes set lease_until = now())
update idem.tasks set lease_until = now() where status = 'running'
