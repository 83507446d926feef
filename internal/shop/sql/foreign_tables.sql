-- foreign_tables: what a database holds besides the tables of Idem and of the
-- shop, and those of extensions: somebody else's data, which a storm must not
-- come near.
-- Rows: the first five by name.
select format('%I.%I', s.nspname, c.relname)
from   pg_catalog.pg_class as c
join   pg_catalog.pg_namespace as s on s.oid = c.relnamespace
where  c.relkind in ('r', 'p', 'v', 'm', 'f')
and    s.nspname not in ('idem', 'shop', 'information_schema')
and    s.nspname not like 'pg\_%'
and    not exists (
           select from pg_catalog.pg_depend as d
           where  d.classid = 'pg_catalog.pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
order  by 1
limit  5
