-- The table that every subject writes its one row to, as the article's handler has it.
create table orders (
  id bigint generated always as identity primary key,
  customer_id bigint not null,
  amount numeric(12,2) not null,
  status text not null
);
