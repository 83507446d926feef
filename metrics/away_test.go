package metrics_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/metrics"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Where the database cannot be asked there are no numbers of it, and that is a number.
func TestGauges_vanishWhileTheDatabaseIsAway(t *testing.T) {
	pool, err := pgxpool.New(t.Context(), "postgres://somebody:hush@127.0.0.1:1/none?connect_timeout=2")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	m := measure(t, metrics.Config{Pool: pool})
	for range 2 { // the second time it is not asked again at once
		got := m.scrape(t)
		if got["idem_database_up"] != 0 || got["idem_database_errors_total"] != 1 {
			t.Errorf("up is %v after %v errors, want 0 after 1", got["idem_database_up"], got["idem_database_errors_total"])
		}
		for name := range got {
			for _, gone := range []string{"idem_tasks{", "idem_effects_unsettled", "idem_oldest_", "idem_sweep_lag_seconds"} {
				if strings.HasPrefix(name, gone) {
					t.Errorf("%s is there", name)
				}
			}
		}
	}
}

// Scrapes that come together, or soon, share one reading.
func TestGauges_areReadOnceForAllWhoScrape(t *testing.T) {
	pool := pgtest.New(t)
	m := measure(t, metrics.Config{Pool: pool})
	before := pool.Stat().AcquireCount()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { m.scrape(t) })
	}
	all.Wait()
	if n := pool.Stat().AcquireCount() - before; n != 1 {
		t.Errorf("the database was asked %d times, want once", n)
	}
}
