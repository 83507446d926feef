-- key_headers: stored header lines come in pairs, the status is an answer's, and
-- nothing is stored that belongs to one session or one connection alone.
-- Rows: one for each broken row: table, row, detail.
select 'idem.idempotency_keys', k.scope || ' ' || k.key,
       'the stored status or header is not one that may be replayed'
from   idem.idempotency_keys as k
where  k.response_status not between 200 and 599
or     cardinality(k.response_headers) % 2 <> 0
or     exists (select from unnest(k.response_headers) with ordinality as h (value, n)
               where  h.n % 2 = 1
               and    lower(encode(h.value, 'escape')) in
                      ('set-cookie', 'set-cookie2', 'date', 'authorization', 'www-authenticate',
                       'proxy-authenticate', 'proxy-authorization', 'connection', 'keep-alive',
                       'transfer-encoding', 'upgrade', 'trailer', 'te'));
