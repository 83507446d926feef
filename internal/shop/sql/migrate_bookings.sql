-- migrate_bookings: one booking per slot; the unique index is what finds a taken
-- one. A slot is a wall clock's time at the shop, so it has no time zone.
-- Repeating it changes nothing.
create table if not exists shop.bookings (
    id          bigint      generated always as identity,
    customer_id bigint      not null,
    slot        timestamp   not null,
    created_at  timestamptz not null default clock_timestamp(),
    principal   text        not null,

    constraint bookings_pkey primary key (id),
    constraint one_booking_per_slot unique (slot),
    constraint customer_positive check (customer_id > 0),
    constraint principal_length check (octet_length(principal) between 1 and 64)
)
