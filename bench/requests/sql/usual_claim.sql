-- Claims a key, or takes over one whose time is over.
-- $1 key  $2 hash of the body
-- Rows: 1 = claimed; 0 = somebody has it, or had.
insert into leases (key, body_hash, lease_until)
values ($1, $2, now() + interval '30 seconds')
on conflict (key) do update set lease_until = excluded.lease_until
where leases.response_status is null and leases.lease_until < now() and leases.body_hash = excluded.body_hash
