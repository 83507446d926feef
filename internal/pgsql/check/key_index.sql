-- key_index: the unique index on (scope, key) is there and valid. It is the
-- guarantee; everything else only saves work.
-- Rows: one if it is not.
select 'idem.idempotency_keys', 'idempotency_keys_pkey',
       'the unique index on (scope, key) is missing or not valid: nothing keeps a key from running twice'
where  not exists (
           select from pg_index as i
           where  i.indrelid = 'idem.idempotency_keys'::regclass
           and    i.indisunique and i.indisvalid and i.indisready and i.indimmediate
           and    i.indpred is null and i.indexprs is null
           and    (select array_agg(a.attname::text order by a.attname)
                   from   pg_attribute as a
                   where  a.attrelid = i.indrelid and a.attnum = any (i.indkey::smallint[]))
                  = array['key', 'scope']);
