-- ledger: the balance of every account, computed from its postings, in one snapshot.
-- Rows: one for each account, by name.
select account.name, coalesce(sum(posting.amount), 0)::bigint as balance
from   shop.accounts as account
left   join shop.postings as posting on posting.account = account.name
group  by account.name
order  by account.name
