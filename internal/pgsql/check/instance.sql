-- instance: the database has one id, from which downstream keys are derived:
-- without it no effect can be called, and with two it could be called twice.
-- Rows: one if it is not so: table, row, detail.
select 'idem.instance', 'id', 'there are ' || count(id) || ' ids of this database'
from   idem.instance
having count(id) <> 1;
