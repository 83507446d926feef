-- Makes every measurement begin with empty tables.
truncate orders, idempotency_keys, leases, idem.idempotency_keys restart identity
