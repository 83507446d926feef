-- The table that handlers write their one row to. Nothing is unique in it, so that an
-- effect that is applied twice is seen.
create table receipts (
  id bigint generated always as identity primary key,
  task bigint not null,
  amount numeric(12,2) not null
);
