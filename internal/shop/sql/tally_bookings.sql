-- tally_bookings: what a range of slots got.
-- $1 the first slot  $2 the one after the last
-- Rows: one: the rows, the slots that have one, and the slots that have more.
select coalesce(sum(had.copies), 0)::bigint           as rows,
       count(*)                                       as slots,
       count(*) filter (where had.copies > 1)         as doubled
from  (select count(*) as copies
       from   shop.bookings
       where  slot >= $1 and slot < $2
       group  by slot) as had
