package idem_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMigrate_twentyAtOnceApplyEachStepOnce(t *testing.T) {
	url := pgtest.Empty(t)
	var mu sync.Mutex
	applied := map[int]int{}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			pool := pgtest.Pool(t, url)
			steps, err := idem.Migrate(t.Context(), pool)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, step := range steps {
				applied[step.Version]++
			}
		})
	}
	all.Wait()
	for _, step := range idem.Migrations() {
		if applied[step.Version] != 1 {
			t.Errorf("step %d was applied %d times, want once", step.Version, applied[step.Version])
		}
	}
}

func TestMigrations_printedSQLIsTheWholeSchema(t *testing.T) {
	pool := pgtest.Pool(t, pgtest.Empty(t))
	for _, step := range idem.Migrations() {
		exec(t, pool, step.SQL)
	}
	db := open(t, pool, idem.Config{})
	for v, err := range idem.Check(t.Context(), db) {
		t.Errorf("broken after the printed migrations: %v %v", v, err)
	}
	steps, err := idem.Migrate(t.Context(), pool)
	if err != nil || len(steps) != 0 {
		t.Errorf("Migrate afterwards applied %v (%v), want nothing", steps, err)
	}
}

func TestMigrations_sayWhatAndWhy(t *testing.T) {
	for _, step := range idem.Migrations() {
		for _, word := range []string{"-- 000", "Why:", "Locks:", "Rows rewritten:"} {
			if !strings.Contains(step.SQL, word) {
				t.Errorf("migration %d lacks %q in its header", step.Version, word)
			}
		}
	}
}

// A step that has to lock a table of running requests gives way to them, and is
// tried again: they wait for it for less than their own limit.
func TestMigrate_givesWayToRunningRequests(t *testing.T) {
	pool := pgtest.Pool(t, pgtest.Empty(t))
	exec(t, pool, idem.Migrations()[0].SQL)
	running, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = running.Rollback(t.Context()) }()
	const read = "select count(*) from idem.idempotency_keys"
	if _, err := running.Exec(t.Context(), read); err != nil {
		t.Fatal(err)
	}
	migrated := make(chan error, 1)
	go func() {
		_, err := idem.Migrate(t.Context(), pool)
		migrated <- err
	}()
	waiting(t, pool)
	// What queues behind the migration is let through before a request's
	// lock_timeout, which is 5 s, though the table is still in use.
	if _, err := pool.Exec(t.Context(), "begin; set local lock_timeout = '5s'; "+read+"; commit"); err != nil {
		t.Errorf("a request behind the migration: %v", err)
	}
	if err := running.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-migrated; err != nil {
		t.Errorf("Migrate: %v, want the step applied once the table is free", err)
	}
}

// waiting waits until a session waits for a lock on a table, or an advisory one.
func waiting(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(10 * time.Second)
	for n := 0; n == 0; {
		select {
		case <-ticker.C:
			if err := pool.QueryRow(t.Context(), "select count(*) from pg_locks where locktype in ('relation', 'advisory') and not granted").Scan(&n); err != nil {
				t.Fatal(err)
			}
		case <-deadline:
			t.Fatal("waited 10 s for a session to wait for a lock")
		}
	}
}
