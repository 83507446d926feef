package idem_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5/pgxpool"
)

func open(t testing.TB, pool *pgxpool.Pool, config idem.Config) *idem.DB {
	t.Helper()
	db, err := idem.Open(t.Context(), pool, config)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func exec(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(context.Background(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func TestOpen_refusesADatabaseThatIsNotMigrated(t *testing.T) {
	pool := pgtest.Pool(t, pgtest.Empty(t))
	if _, err := idem.Open(t.Context(), pool, idem.Config{}); !errors.Is(err, idem.ErrNotMigrated) {
		t.Errorf("got %v, want ErrNotMigrated", err)
	}
}

func TestOpen_refusesANewerSchema(t *testing.T) {
	pool := pgtest.New(t)
	exec(t, pool, "insert into idem.migrations (version, name) values (999, 'future')")
	if _, err := idem.Open(t.Context(), pool, idem.Config{}); !errors.Is(err, idem.ErrSchemaNewer) {
		t.Errorf("Open: got %v, want ErrSchemaNewer", err)
	}
	if _, err := idem.Migrate(t.Context(), pool); !errors.Is(err, idem.ErrSchemaNewer) {
		t.Errorf("Migrate: got %v, want ErrSchemaNewer", err)
	}
	exec(t, pool, "delete from idem.migrations where version = 999")
}

func TestOpen_saysThatNoDatabaseIsThereAndNotThePassword(t *testing.T) {
	pool, err := pgxpool.New(t.Context(), "postgres://somebody:hush@127.0.0.1:1/none?connect_timeout=2")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	_, err = idem.Open(t.Context(), pool, idem.Config{})
	if !errors.Is(err, idem.ErrUnavailable) {
		t.Fatalf("got %v, want ErrUnavailable", err)
	}
	if strings.Contains(err.Error(), "hush") {
		t.Errorf("the error holds the password: %v", err)
	}
}

func TestRunSweeper_endsWithItsContext(t *testing.T) {
	db := open(t, pgtest.New(t), idem.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := idem.RunSweeper(ctx, db); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
}
