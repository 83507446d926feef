package idemtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/testdb"
	"github.com/jackc/pgx/v5/pgxpool"
)

// closeLimit is how long a connection that the test has not given back yet is
// waited for when its pool is closed.
const closeLimit = 5 * time.Second

// DB is the database of one test. It is safe for concurrent use.
type DB struct {
	database *testdb.Database
	pool     *pgxpool.Pool
}

// New makes a database for t, with Idem's schema and what migrate makes in it;
// nil makes nothing. migrate runs once for all tests that name the same function
// (a closure that is made anew counts as another one), in a database that is then
// cloned, and must leave no connection behind.
//
// When t ends, Idem's invariants and checks, which are the program's own, are
// checked; a broken one fails t, and so does a connection that was not given
// back. Then the database is dropped.
func New(t testing.TB, migrate func(context.Context, *pgxpool.Pool) error, checks ...idem.CheckFunc) *DB {
	t.Helper()
	return NewAt(t, "", migrate, checks...)
}

// NewAt is New on the server of url, such as
// postgres://user:password@127.0.0.1:5432/postgres. Its user must be allowed to
// create databases. Nothing is left there. An empty url means New.
func NewAt(t testing.TB, url string, migrate func(context.Context, *pgxpool.Pool) error, checks ...idem.CheckFunc) *DB {
	t.Helper()
	ctx := context.Background()
	database, err := clone(ctx, url, migrate)
	if err != nil {
		t.Fatalf("idemtest: no database for this test: %v", err)
	}
	t.Cleanup(func() { report(t, database.Drop()) })
	t.Cleanup(func() {
		for _, err := range database.Check(ctx, checks...) {
			report(t, err)
		}
	})
	pool, err := testdb.Connect(ctx, database.URL())
	if err != nil {
		t.Fatalf("idemtest: %v", err)
	}
	t.Cleanup(func() { report(t, closePool(pool)) })
	return &DB{database: database, pool: pool}
}

// Pool is a pool on the database. It is closed when the test ends.
func (db *DB) Pool() *pgxpool.Pool { return db.pool }

// URL is where the database is, for another pool or another process. It holds
// the server's password.
func (db *DB) URL() string { return db.database.URL() }

func report(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("idemtest: %v", err)
	}
}

// serverAt is the server of url, or this process's own.
func serverAt(url string) (*testdb.Server, error) {
	if url == "" {
		return testdb.Private()
	}
	return testdb.At(url)
}

// clone makes a database on the server of url.
func clone(ctx context.Context, url string, migrate testdb.Migrate) (*testdb.Database, error) {
	server, err := serverAt(url)
	if err != nil {
		return nil, err
	}
	return server.Clone(ctx, migrate)
}

var errKept = errors.New("a connection was taken from the pool and not given back, or rows were not closed")

// closePool closes a pool. A pool waits for its connections for as long as it
// takes; the test does not.
func closePool(pool *pgxpool.Pool) error {
	closed := make(chan struct{})
	go func() {
		pool.Close()
		close(closed)
	}()
	limit := time.NewTimer(closeLimit)
	defer limit.Stop()
	select {
	case <-closed:
		return nil
	case <-limit.C:
		return fmt.Errorf("%w: %d of them", errKept, pool.Stat().AcquiredConns())
	}
}
