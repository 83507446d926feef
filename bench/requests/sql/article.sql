create table if not exists idempotency_keys (
  key text primary key,
  body_hash text not null,
  response_status int,
  response_body jsonb,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);

create index if not exists idempotency_keys_created_at_idx on idempotency_keys (created_at);

create or replace function set_updated_at()
returns trigger as $$
begin
  new.updated_at = now();
  return new;
end;
$$ language plpgsql;

create trigger trg_idem_updated
before update on idempotency_keys
for each row execute function set_updated_at();
