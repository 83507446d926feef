package idemtest_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemtest"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func count(t *testing.T, pool *pgxpool.Pool, query string) (n int) {
	t.Helper()
	if err := pool.QueryRow(context.Background(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestNew_everyTestHasADatabaseOfItsOwnAndMigratesOnce(t *testing.T) {
	var migrations atomic.Int64
	counted := func(ctx context.Context, pool *pgxpool.Pool) error {
		migrations.Add(1)
		return tables(ctx, pool)
	}
	t.Run("all", func(t *testing.T) {
		for i := range 4 {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				pool := idemtest.New(t, counted).Pool()
				if _, err := pool.Exec(t.Context(), "insert into orders (amount) values (1)"); err != nil {
					t.Fatal(err)
				}
				if n := count(t, pool, "select count(*) from orders"); n != 1 {
					t.Errorf("%d orders, want 1", n)
				}
			})
		}
	})
	if got := migrations.Load(); got != 1 {
		t.Errorf("migrated %d times, want once", got)
	}
}

func TestNew_tellsClosuresOfTheSameCodeApart(t *testing.T) {
	with := func(table string) func(context.Context, *pgxpool.Pool) error {
		return func(ctx context.Context, pool *pgxpool.Pool) error {
			_, err := pool.Exec(ctx, "create table "+table+" ()")
			return err
		}
	}
	for _, table := range []string{"a", "b"} {
		pool := idemtest.New(t, with(table)).Pool()
		if n := count(t, pool, "select count(*) from pg_tables where schemaname = 'public' and tablename = '"+table+"'"); n != 1 {
			t.Errorf("the database of %s has %d tables of that name, want 1", table, n)
		}
	}
}

func TestNew_withoutAMigrationHasIdemsSchema(t *testing.T) {
	db := idemtest.New(t, nil)
	if _, err := idem.Open(t.Context(), db.Pool(), idem.Config{}); err != nil {
		t.Errorf("Idem cannot be opened: %v", err)
	}
}

func TestNew_failsTheTestWithABrokenInvariant(t *testing.T) {
	noOrders := func(ctx context.Context, tx pgx.Tx) ([]idem.Violation, error) {
		rows, err := tx.Query(ctx, "select 'no_orders', 'orders', id::text, 'is there' from orders")
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, pgx.RowToStructByPos[idem.Violation])
	}
	wantFailure(t, record(t, func(t testing.TB) {
		db := idemtest.New(t, tables, noOrders)
		if _, err := db.Pool().Exec(context.Background(), "insert into orders (amount) values (1)"); err != nil {
			t.Fatalf("%v", err)
		}
	}), `invariant no_orders is broken: orders "1": is there`)
}

func TestNew_failsTheTestThatKeepsAConnection(t *testing.T) {
	t.Parallel()
	var kept *pgxpool.Conn
	failures := record(t, func(t testing.TB) {
		var err error
		if kept, err = idemtest.New(t, nil).Pool().Acquire(context.Background()); err != nil {
			t.Fatalf("%v", err)
		}
	})
	kept.Release()
	wantFailure(t, failures, "not given back", "1 of them")
	if all := strings.Join(failures, "\n"); !strings.Contains(all, "was left behind") {
		t.Errorf("the failures are %q, want them to tell of the session that was ended, too", all)
	}
}

func TestNew_saysWhatAMigrationDidWrong(t *testing.T) {
	wantFailure(t, record(t, func(t testing.TB) {
		idemtest.New(t, func(ctx context.Context, pool *pgxpool.Pool) error {
			_, err := pool.Exec(ctx, "create tabel orders ()")
			return err
		})
	}), "no database for this test", "migrate", "syntax error")
}

func TestNewAt_leavesNothingOnTheServer(t *testing.T) {
	url := pgtest.Server(t).URL()
	pool := pgtest.Pool(t, url)
	const ours = "select count(*) from pg_database where datname like 'idemtest\\_%'"
	t.Run("test", func(t *testing.T) {
		first := idemtest.NewAt(t, url, tables)
		idemtest.NewAt(t, url, tables)
		if n := count(t, pool, ours); n != 3 {
			t.Errorf("%d databases, want two and their template", n)
		}
		if _, err := first.Pool().Exec(t.Context(), "insert into orders (amount) values (1)"); err != nil {
			t.Error(err)
		}
	})
	if n := count(t, pool, ours); n != 0 {
		t.Errorf("%d databases are left, want none", n)
	}
}

func TestNewAt_refusesWhatIsNoURLWithoutRepeatingIt(t *testing.T) {
	failures := record(t, func(t testing.TB) { idemtest.NewAt(t, "host=127.0.0.1 password=secret", nil) })
	wantFailure(t, failures, "postgres://user:password@host:port/name")
	if strings.Contains(failures[0], "secret") {
		t.Errorf("the failure holds the password: %s", failures[0])
	}
}
