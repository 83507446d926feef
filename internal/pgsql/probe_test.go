package pgsql_test

import (
	"fmt"
	"testing"

	"github.com/idem-go/idem/internal/pgsql/keys"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/internal/sqlstate"
	"github.com/jackc/pgx/v5"
)

const remembered = `insert into idem.idempotency_keys (scope, key, fence, state, fingerprint_version, fingerprint,
	response_status, response_headers, response_body, expires_at, committed)
	values ('s', $1, gen_random_uuid(), 'answered', 1, sha256('x'), 201, '{}', '', now() + interval '1 hour', true)`

// An answer that was committed after the snapshot is not there to be read, and
// the unique index still knows it.
func TestKeyProbe_seesWhatTheSnapshotIsTooOldToSee(t *testing.T) {
	for level, failure := range map[pgx.TxIsoLevel]string{
		pgx.ReadCommitted:  "", // reads it anyhow
		pgx.RepeatableRead: sqlstate.SerializationFailure,
		pgx.Serializable:   sqlstate.SerializationFailure,
	} {
		t.Run(string(level), func(t *testing.T) {
			pool := pgtest.New(t)
			tx, err := pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback(t.Context()) }()
			if _, err := tx.Exec(t.Context(), "select count(*) from idem.idempotency_keys"); err != nil { // takes the snapshot
				t.Fatal(err)
			}
			if _, err := pool.Exec(t.Context(), remembered, "k"); err != nil {
				t.Fatal(err)
			}
			found, err := tx.Exec(t.Context(), keys.Read, "s", "k")
			if want := level == pgx.ReadCommitted; err != nil || (found.RowsAffected() == 1) != want {
				t.Fatalf("key_read found %d rows (%v), want some: %v", found.RowsAffected(), err, want)
			}
			absent, err := tx.Exec(t.Context(), keys.Probe, "s", "other", "00000000-0000-0000-0000-000000000001")
			if err != nil || absent.RowsAffected() != 1 {
				t.Errorf("an absent key: %d rows (%v), want 1", absent.RowsAffected(), err)
			}
			probed, err := tx.Exec(t.Context(), keys.Probe, "s", "k", "00000000-0000-0000-0000-000000000001")
			if got := sqlstate.Code(err); got != failure || probed.RowsAffected() != 0 {
				t.Errorf("key_probe: %s, %v; want %q and no row", fmt.Sprint(probed), err, failure)
			}
		})
	}
}
