-- migrate_receipts: the receipts that were sent, one row for each time that one was, as
-- the outbox of a mailer. No index keeps an order from having two: what does is the task
-- that sends it, and here it would be seen. Repeating it changes nothing.
create table if not exists shop.receipts (
    id       bigint      generated always as identity,
    order_id bigint      not null,
    sent_at  timestamptz not null default clock_timestamp(),

    constraint receipts_pkey primary key (id),
    constraint order_exists foreign key (order_id) references shop.orders (id)
)
