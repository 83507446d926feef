-- check_ledger_sum: the ledger sums to zero, since the postings of every effect do.
-- Rows: one for each effect whose postings do not: table, row, what is wrong.
select 'shop.postings', effect, format('its postings sum to %s, not to 0', sum(amount))
from   shop.postings
group  by effect
having sum(amount) <> 0
order  by effect
