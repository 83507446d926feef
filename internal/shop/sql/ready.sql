-- ready: whether the shop's tables are there and may be read and written.
-- Rows: one; false = a table is missing, or a right to it is.
select count(*) = 8
from   pg_catalog.pg_class as found
where  found.relnamespace = to_regnamespace('shop')
and    found.relname in ('orders', 'unguarded_orders', 'bookings', 'payments', 'accounts', 'postings', 'receipts', 'refunds')
and    found.relkind in ('r', 'p')
and    has_table_privilege(found.oid, 'select')
and    has_table_privilege(found.oid, 'insert')
and   (found.relname not in ('payments', 'refunds') or has_table_privilege(found.oid, 'update'))
