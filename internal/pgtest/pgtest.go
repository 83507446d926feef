// Package pgtest is what Idem's own tests use: a database per test, from package
// testdb, whose invariants are checked when the test ends, and tests that leave
// no goroutine behind.
package pgtest

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/idem-go/idem/internal/embedded"
	"github.com/idem-go/idem/internal/testdb"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"
)

// parallel is how many of the tests that call Parallel run at a time, unless -parallel
// says otherwise: more than a small machine has processors, since most of their time they
// wait for limits and leases to be over.
const parallel = "4"

// Main runs a package's tests: call it from TestMain. It stops the server, and
// fails if a goroutine is left behind.
func Main(m *testing.M) {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "test.parallel" })
	if !asked {
		_ = flag.Set("test.parallel", parallel) // a flag of every test binary
	}
	status := m.Run()
	if err := testdb.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest: the server did not stop:", err)
		status = max(status, 1)
	}
	if status == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest:", err)
			status = 1
		}
	}
	os.Exit(status)
}

// ForExample is New for a testable example, which has no testing.TB. Call done at
// its end; it panics if an invariant is broken.
func ForExample() (pool *pgxpool.Pool, done func()) {
	t := &example{}
	return New(t), t.end
}

// Server is the server that the test's databases live on.
func Server(t testing.TB) *embedded.Server {
	t.Helper()
	return server(t).Embedded()
}

func server(t testing.TB) *testdb.Server {
	t.Helper()
	s, err := testdb.Private()
	if err != nil {
		t.Fatalf("pgtest: no PostgreSQL: %v", err)
	}
	return s
}

// Empty returns the URL of an empty database.
func Empty(t testing.TB) string {
	t.Helper()
	d, err := server(t).Empty(context.Background())
	return dropped(t, d, err).PooledURL()
}

// NewURL returns the URL of a migrated database, for other processes. The
// invariants are checked when the test ends.
func NewURL(t testing.TB) string {
	t.Helper()
	d := migrated(t)
	t.Cleanup(func() {
		for _, err := range d.Check(context.Background()) {
			t.Errorf("pgtest: check: %v", err)
		}
	})
	return d.PooledURL()
}

// Direct leads past a pooler to the database of a URL of this package, for a test
// whose sessions are not alike: they have settings or locks of their own.
func Direct(t testing.TB, at string) string {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal("pgtest: the URL is none of this package")
	}
	return Server(t).DatabaseURL(strings.TrimPrefix(u.Path, "/"))
}

func migrated(t testing.TB) *testdb.Database {
	t.Helper()
	d, err := server(t).Clone(context.Background(), nil)
	return dropped(t, d, err)
}

// dropped drops the database when the test ends. A connection that is left
// behind fails the test.
func dropped(t testing.TB, d *testdb.Database, err error) *testdb.Database {
	t.Helper()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		if err := d.Drop(); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return d
}

// New returns a pool on a migrated database. The pool is closed and the
// invariants are checked when the test ends.
func New(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return Pool(t, NewURL(t))
}

// Pool returns a pool on url that is closed when the test ends.
func Pool(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return PoolWith(t, config)
}

// PoolWith is Pool for a configuration of the test's own.
func PoolWith(t testing.TB, config *pgxpool.Config) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// Broken is New for a test that breaks invariants on purpose: they are not
// checked when it ends.
func Broken(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return Pool(t, migrated(t).PooledURL())
}
