-- migrate_refunds: what is given back of payments, each once: the constraint
-- one_refund_per_payment is what keeps two keys from refunding one payment twice. A refund
-- is there before the bank is asked for it, with the task that does. Repeating it changes
-- nothing.
create table if not exists shop.refunds (
    id         bigint      generated always as identity,
    payment_id bigint      not null,
    amount     bigint      not null,
    created_at timestamptz not null default clock_timestamp(),
    principal  text        not null,
    status     text        not null default 'pending',

    constraint refunds_pkey primary key (id),
    constraint one_refund_per_payment unique (payment_id),
    constraint payment_exists foreign key (payment_id) references shop.payments (id),
    constraint amount_positive check (amount > 0),
    constraint principal_length check (octet_length(principal) between 1 and 64),
    constraint status_known check (status in ('pending', 'done', 'failed'))
)
