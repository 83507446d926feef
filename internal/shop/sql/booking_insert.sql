-- booking_insert: takes a slot, in the guard's transaction.
-- $1 principal  $2 customer_id  $3 slot
-- Waits for a transaction that is taking the same slot. Rows: one, the
-- booking's id; zero = the slot is taken.
insert into shop.bookings (principal, customer_id, slot)
values ($1, $2, $3)
on conflict (slot) do nothing
returning id
