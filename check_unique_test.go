package idem_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgsql"
	"github.com/idem-go/idem/internal/pgsql/check"
	"github.com/idem-go/idem/internal/pgtest"
)

// hidden plants a second row of a key while the index takes no new entries, as a
// damaged index does.
const hidden = `update pg_index set indisready = false where indexrelid = 'idem.idempotency_keys_pkey'::regclass`

const healed = `update pg_index set indisready = true where indexrelid = 'idem.idempotency_keys_pkey'::regclass`

// noScan makes the planner use the index wherever it can.
const noScan = "&enable_seqscan=off&enable_sort=off&enable_hashagg=off"

func TestCheck_findsADuplicateThatTheIndexDoesNotKnow(t *testing.T) {
	pool := pgtest.Broken(t)
	exec(t, pool, rows, "k", 100, "1 hour", nil)
	exec(t, pool, hidden)
	pool.Reset() // so that what a session knows of the index is new
	exec(t, pool, strings.Replace(rows, "$1 || i", "$1", 1), "k7", 1, "1 hour", nil)
	exec(t, pool, healed)
	pool.Reset()
	db := open(t, pgtest.Pool(t, pgtest.Direct(t, pool.Config().ConnString())+noScan), idem.Config{})
	if n := keysIn(t, db, "scope = 's' and key = 'k7'"); n != 1 {
		t.Fatalf("by the index the key has %d rows, want 1", n)
	}
	if got := broken(t, db); !slices.Contains(got, "key_unique") {
		t.Errorf("Check named %v, want key_unique among them", got)
	}
}

func TestCheck_uniquenessIsReadFromTheTable(t *testing.T) {
	statement, err := check.Files.ReadFile("key_unique.sql")
	if err != nil {
		t.Fatal(err)
	}
	pool := pgtest.New(t)
	exec(t, pool, rows, "k", 2000, "1 hour", nil)
	exec(t, pool, "analyze idem.idempotency_keys")
	var plan []byte
	forced := pgtest.Pool(t, pgtest.Direct(t, pool.Config().ConnString())+noScan)
	if err := forced.QueryRow(t.Context(), "explain (format json) "+pgsql.Statement(string(statement))).Scan(&plan); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(plan), "Index") || !strings.Contains(string(plan), `"Seq Scan"`) {
		t.Errorf("the plan asks the index:\n%s", plan)
	}
}
