-- migrate_unguarded_orders: the orders that POST /unguarded/orders makes, for
-- comparison; ids of its own. Repeating it changes nothing.
create table if not exists shop.unguarded_orders (
    id          bigint      generated always as identity,
    customer_id bigint      not null,
    amount      bigint      not null,
    created_at  timestamptz not null default clock_timestamp(),
    principal   text        not null,
    status      text        not null default 'new',

    constraint unguarded_orders_pkey primary key (id),
    constraint customer_positive check (customer_id > 0),
    constraint amount_positive check (amount > 0),
    constraint status_known check (status in ('new')),
    constraint principal_length check (octet_length(principal) between 1 and 64)
)
