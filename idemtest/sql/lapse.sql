-- lapse: lets the time pass that a dead owner is waited for: the leases of claimed
-- keys and of running tasks are over, and so is the time in which a call may be under
-- way.
-- Rows: none matter.
with leases as (
    update idem.idempotency_keys
    set    lease_until = clock_timestamp()
    where  state = 'claimed' and lease_until > clock_timestamp()
), running as (
    update idem.tasks
    set    lease_until = clock_timestamp()
    where  status = 'running' and lease_until > clock_timestamp()
), takes as (
    update idem.takes
    set    lease_until = clock_timestamp()
    where  lease_until > clock_timestamp()
)
update idem.applied_effects
set    call_until = clock_timestamp()
where  status in ('started', 'unknown') and call_until > clock_timestamp();
