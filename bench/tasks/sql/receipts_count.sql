-- How many receipts there are, and of how many tasks.
select count(*), count(distinct task) from receipts
