-- What a lease is kept in where it is written the usual way: a claim with a time,
-- and the answer in the same row.
create table leases (
  key text primary key,
  body_hash text not null,
  lease_until timestamptz not null,
  response_status int,
  response_body bytea,
  created_at timestamptz not null default now()
);
