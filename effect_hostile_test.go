package idem_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func count(t *testing.T, pool *pgxpool.Pool, query string) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// What fn leaves on the connection may keep its savepoint from being rolled back; then
// nobody can commit.
func TestE3_whatCannotBeTakenBackCannotBeCommitted(t *testing.T) {
	pool := pgtest.New(t)
	if _, err := pool.Exec(t.Context(), "create table ledger (what text)"); err != nil {
		t.Fatal(err)
	}
	refused := errors.New("fn failed")
	var open pgx.Rows
	for name, fn := range map[string]func(ctx context.Context, tx pgx.Tx) (int, error){
		"rows left open": func(ctx context.Context, tx pgx.Tx) (n int, err error) {
			if open, err = tx.Query(ctx, "insert into ledger select 'x' from generate_series(1, 1000) returning what"); err != nil {
				return 0, err
			}
			open.Next()
			return 0, refused
		},
		"its savepoint rolled back": func(ctx context.Context, tx pgx.Tx) (int, error) {
			_, err := tx.Exec(ctx, "rollback to savepoint sp_1; insert into ledger values ('x')")
			return 1, err
		},
		"its savepoint released": func(ctx context.Context, tx pgx.Tx) (int, error) {
			_, err := tx.Exec(ctx, "insert into ledger values ('x'); release savepoint sp_1")
			return 1, errors.Join(err, refused)
		},
	} {
		t.Run(name, func(t *testing.T) {
			tx, err := pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback(t.Context()) }()
			_, applied, err := idem.Apply(t.Context(), tx, idem.Effect{Scope: "s", Key: "e"}, fn)
			if err == nil || applied {
				t.Errorf("applied %v, %v", applied, err)
			}
			if open != nil {
				open.Close()
			}
			if err := tx.Commit(t.Context()); err == nil && count(t, pool, "select count(*) from ledger")+count(t, pool, "select count(*) from idem.applied_effects") > 0 {
				t.Error("a half was committed")
			}
		})
	}
}

type secret struct{ amount int }

// Inputs that JSON does not tell apart would pass for one another.
func TestE4_inputThatIsNotKeptIsRefused(t *testing.T) {
	pool := pgtest.New(t)
	for _, input := range []any{"a\xff", secret{1}, &secret{1}, []string{"\xc3("}, map[string]string{"k": "\xff"}} {
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			_, _, err := idem.Apply(t.Context(), tx, idem.Effect{Scope: "s", Key: "e", Input: input},
				func(context.Context, pgx.Tx) (int, error) { return 1, nil })
			return err
		})
		if !errors.Is(err, idem.ErrEffectInvalid) || !strings.Contains(err.Error(), "Effect.Input") {
			t.Errorf("%#v: %v", input, err)
		}
	}
	for _, input := range []any{`\ufffd`, "\ufffd", struct{}{}, struct{ Amount int }{1}} {
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			_, _, err := idem.Apply(t.Context(), tx, idem.Effect{Scope: "s", Key: "fine", Input: input},
				func(context.Context, pgx.Tx) (int, error) { return 1, nil })
			return errors.Join(err, errors.New("rolled back"))
		})
		if errors.Is(err, idem.ErrEffectInvalid) {
			t.Errorf("%#v: %v", input, err)
		}
	}
}

// A result that could not be read again is none.
func TestApply_resultThatCannotBeReadAgain(t *testing.T) {
	pool := pgtest.New(t)
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		_, _, err := idem.Apply(t.Context(), tx, idem.Effect{Scope: "s", Key: "e"},
			func(context.Context, pgx.Tx) (error, error) { return errors.New("an interface"), nil })
		return err
	})
	if !errors.Is(err, idem.ErrEffectInvalid) || count(t, pool, "select count(*) from idem.applied_effects") != 0 {
		t.Errorf("%v", err)
	}
}
