-- key_fingerprint: everything that is remembered says which request it was for.
-- Rows: one for each broken row: table, row, detail.
select 'idem.idempotency_keys', scope || ' ' || key,
       'the fingerprint is not 32 bytes of a known format (version '
           || coalesce(fingerprint_version::text, 'null') || ')'
from   idem.idempotency_keys
where  fingerprint is null or octet_length(fingerprint) <> 32
or     fingerprint_version is null or fingerprint_version not between 1 and 3;
