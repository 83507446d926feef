-- migrate_accounts_rows: the shop's accounts: cash is what the bank has taken in,
-- sales what it was taken for. Repeating it changes nothing.
insert into shop.accounts (name)
values ('cash'), ('sales')
on conflict (name) do nothing
