-- migrate_accounts: what money is posted to. Repeating it changes nothing.
create table if not exists shop.accounts (
    name text not null,

    constraint accounts_pkey primary key (name),
    constraint name_length check (octet_length(name) between 1 and 64)
)
