package idem_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5/pgxpool"
)

// defaultLevels are what a database or a role may have been given as its default.
var defaultLevels = []string{"read committed", "repeatable read", "serializable"}

// poolAt is a pool whose sessions have a default isolation level.
func poolAt(t *testing.T, url, level string) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.Pool(t, pgtest.Direct(t, url)+"&default_transaction_isolation="+strings.ReplaceAll(level, " ", "%20"))
	var got string
	if err := pool.QueryRow(t.Context(), "show default_transaction_isolation").Scan(&got); err != nil || got != level {
		t.Fatalf("the default is %q (%v), want %s", got, err, level)
	}
	return pool
}

func TestMigrate_manyAtOnceUnderAnyDefaultIsolation(t *testing.T) {
	for _, level := range defaultLevels {
		t.Run(level, func(t *testing.T) {
			for range 3 {
				url := pgtest.Empty(t)
				var mu sync.Mutex
				var all sync.WaitGroup
				applied, start := 0, make(chan struct{})
				for range 8 {
					pool := poolAt(t, url, level)
					all.Go(func() {
						<-start
						steps, err := idem.Migrate(t.Context(), pool)
						if err != nil {
							t.Error(err)
						}
						mu.Lock()
						defer mu.Unlock()
						applied += len(steps)
					})
				}
				close(start)
				all.Wait()
				if want := len(idem.Migrations()); applied != want {
					t.Errorf("%d steps were applied, want %d", applied, want)
				}
			}
		})
	}
}

func TestSweep_manyAtOnceUnderAnyDefaultIsolation(t *testing.T) {
	for _, level := range defaultLevels {
		t.Run(level, func(t *testing.T) {
			url := pgtest.NewURL(t)
			db, requests := open(t, poolAt(t, url, level), idem.Config{}), pgtest.Pool(t, url)
			exec(t, db.Pool(), rows, "over", 4000, "-1 second", nil)
			exec(t, db.Pool(), rows, "entomb", 500, "-1 second", "1 hour")
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					if _, err := idem.Sweep(t.Context(), db); err != nil {
						t.Error(err)
					}
				})
			}
			for range 20 { // requests write among them
				exec(t, requests, `update idem.idempotency_keys set expires_at = now() + interval '1 hour', tombstone_until = null
					where key = (select min(key) from idem.idempotency_keys where state = 'answered')`)
			}
			all.Wait()
			if _, err := idem.Sweep(t.Context(), db); err != nil {
				t.Error(err)
			}
			if n := keysIn(t, db, "state = 'answered' and expires_at < now()"); n != 0 {
				t.Errorf("%d rows whose time is over are left", n)
			}
		})
	}
}
