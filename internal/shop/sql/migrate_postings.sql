-- migrate_postings: the ledger, double entry. Rows are only ever added; an account's
-- balance is their sum and is stored nowhere. The postings of one effect sum to zero,
-- and no account has two of them. Repeating it changes nothing.
create table if not exists shop.postings (
    amount     bigint      not null,
    created_at timestamptz not null default clock_timestamp(),
    effect     text        not null,
    account    text        not null,

    constraint postings_pkey primary key (effect, account),
    constraint account_exists foreign key (account) references shop.accounts (name),
    constraint amount_moves check (amount <> 0),
    constraint effect_length check (octet_length(effect) between 1 and 512)
)
