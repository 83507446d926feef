-- migrate_payments: what is paid for orders. A payment is there before its charge:
-- its id is what the charge is named by. Repeating it changes nothing.
create table if not exists shop.payments (
    id         bigint      generated always as identity,
    order_id   bigint      not null,
    amount     bigint      not null,
    created_at timestamptz not null default clock_timestamp(),
    principal  text        not null,
    card       text        not null,
    status     text        not null default 'pending',

    constraint payments_pkey primary key (id),
    constraint order_exists foreign key (order_id) references shop.orders (id),
    constraint amount_positive check (amount > 0),
    constraint principal_length check (octet_length(principal) between 1 and 64),
    constraint card_length check (octet_length(card) between 1 and 64),
    constraint status_known check (status in ('pending', 'captured', 'declined'))
)
