-- key_probe: asks the unique index, not the snapshot, whether a key has a row.
-- Under repeatable read and above the snapshot may be older than the lock, so
-- that key_read cannot see an answer that was committed in between. The row is
-- rolled back to a savepoint in any case.
-- $1 scope  $2 key  $3 fence
-- Rows: 1 = absent. A serialization failure (40001) means that an answer
-- appeared after the snapshot: begin again.
insert into idem.idempotency_keys (scope, key, fence, state, fingerprint_version, fingerprint, expires_at)
values ($1, $2, $3, 'unknown', 1, sha256(''), 'infinity')
on conflict (scope, key) do nothing;
