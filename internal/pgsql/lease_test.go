package pgsql_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/idem-go/idem/internal/pgsql/keys"
	"github.com/idem-go/idem/internal/pgtest"
)

// A renewal that was on its way when its claim was given up must not make every retry
// wait for a lease that nobody holds; one that is only late is in time.
func TestRenew_aLateLeaseAndNotAnEndedOne(t *testing.T) {
	pool := pgtest.New(t)
	fence := uuid.New()
	live := func() (live bool) {
		t.Helper()
		err := pool.QueryRow(t.Context(), "select lease_until > clock_timestamp() from idem.idempotency_keys where key = 'k'").Scan(&live)
		if err != nil {
			t.Fatal(err)
		}
		return live
	}
	run := func(sql string, args ...any) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	renew := func() {
		run(keys.Renew, []string{"s"}, []string{"k"}, []string{fence.String()}, []float64{60}, []float64{60})
	}
	run(keys.Lease, "s", "k", fence, int16(1), make([]byte, 32), 0.0, 60.0, "", "")
	if live() {
		t.Fatal("a lease of no time lives")
	}
	if renew(); !live() {
		t.Error("a lease that was late was not renewed")
	}
	run("update idem.idempotency_keys set lease_until = clock_timestamp()")
	if run(keys.Bound, "s", "k", fence, 60.0); !live() {
		t.Error("a lease that cannot be renewed during a transaction was not held for its length")
	}
	run(keys.Abandon, "s", "k", fence, 60.0)
	if renew(); live() {
		t.Error("a lease that was ended was renewed")
	}
}
