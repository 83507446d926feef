-- How many orders there are.
select count(*)::float8 from orders
