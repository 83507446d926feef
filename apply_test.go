package idem_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// posting is the effect that these tests apply.
var posting = idem.Effect{Scope: "shop", Key: "post:1", Input: 1500}

// entry is what it comes to.
type entry struct {
	ID int64 `json:"id"`
}

// ledger is a database with a table that effects write to.
func ledger(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.New(t)
	exec(t, pool, "create table ledger (id bigint generated always as identity, amount bigint not null)")
	return pool
}

// postOnce is a function for Apply that writes one row and counts itself.
func postOnce(ran *int) func(context.Context, pgx.Tx) (entry, error) {
	return func(ctx context.Context, tx pgx.Tx) (e entry, err error) {
		*ran++
		return e, tx.QueryRow(ctx, "insert into ledger (amount) values (1500) returning id").Scan(&e.ID)
	}
}

// begin begins a transaction that is over when the test is.
func begin(t *testing.T, pool *pgxpool.Pool, level pgx.TxIsoLevel) pgx.Tx {
	t.Helper()
	tx, err := pool.BeginTx(context.Background(), pgx.TxOptions{IsoLevel: level})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

func commit(t *testing.T, tx pgx.Tx) {
	t.Helper()
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// wantCount fails unless a query counts so many.
func wantCount(t *testing.T, pool *pgxpool.Pool, query string, want int) {
	t.Helper()
	var got int
	if err := pool.QueryRow(context.Background(), query).Scan(&got); err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("%s: got %d, want %d", query, got, want)
	}
}

// blocked waits until a session of the test's database waits for a lock.
func blocked(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for waits := false; !waits; time.Sleep(2 * time.Millisecond) {
		err := pool.QueryRow(context.Background(), `select exists (select from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock')`).Scan(&waits)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("nobody waits for a lock: %v", err)
		}
	}
}

// applying is an Apply under way.
type applying struct {
	done    chan struct{}
	got     entry
	applied bool
	err     error
	ran     int
}

// applyBeside begins to apply posting in tx, which waits for another transaction.
func applyBeside(t *testing.T, tx pgx.Tx) *applying {
	a := &applying{done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.got, a.applied, a.err = idem.Apply(context.Background(), tx, posting, postOnce(&a.ran))
	}()
	return a
}

func TestE1_twoTransactionsAtOnceApplyOnce(t *testing.T) {
	pool := ledger(t)
	one, two := begin(t, pool, pgx.ReadCommitted), begin(t, pool, pgx.ReadCommitted)
	var ran int
	first, applied, err := idem.Apply(t.Context(), one, posting, postOnce(&ran))
	if err != nil || !applied || ran != 1 {
		t.Fatalf("the first: %v, applied %v, %d runs", err, applied, ran)
	}
	second := applyBeside(t, two)
	blocked(t, pool)
	commit(t, one)
	<-second.done
	if second.err != nil || second.applied || second.ran != 0 || second.got != first {
		t.Errorf("the second got %+v, applied %v, %v after %d runs; the first %+v", second.got, second.applied, second.err, second.ran, first)
	}
	commit(t, two)
	third, applied, err := idem.Apply(t.Context(), begin(t, pool, pgx.Serializable), posting, postOnce(&ran))
	if err != nil || applied || third != first || ran != 1 {
		t.Errorf("later: %+v, applied %v, %v, %d runs", third, applied, err, ran)
	}
	wantCount(t, pool, "select count(*) from ledger", 1)
	wantCount(t, pool, "select count(*) from idem.applied_effects where status = 'applied'", 1)
}

func TestE1_aboveReadCommittedTheSecondIsToBeRunAgain(t *testing.T) {
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		t.Run(string(level), func(t *testing.T) {
			pool := ledger(t)
			one, two := begin(t, pool, level), begin(t, pool, level)
			exec2(t, two, "select count(*) from ledger") // its snapshot is taken
			var ran int
			if _, _, err := idem.Apply(t.Context(), one, posting, postOnce(&ran)); err != nil {
				t.Fatal(err)
			}
			second := applyBeside(t, two)
			blocked(t, pool)
			commit(t, one)
			<-second.done
			if code(second.err) != "40001" || second.ran != 0 {
				t.Errorf("the second got %v after %d runs, want 40001", second.err, second.ran)
			}
		})
	}
}

func exec2(t *testing.T, tx pgx.Tx, sql string) {
	t.Helper()
	if _, err := tx.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func code(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// The wait is bounded where the caller's transaction has no bound, by the caller's
// where it has one, and what the caller had set is as it was.
func TestE1_theWaitIsBounded(t *testing.T) {
	for _, c := range []struct{ name, before, own string }{
		{"new", "", "0"},
		{"new, own limit", "", "150ms"},
		{"absent", "absent", "0"},
		{"absent, own limit", "absent", "150ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			pool := ledger(t)
			if c.before != "" {
				exec(t, pool, `insert into idem.applied_effects (scope, effect_key, input, status)
					values ('shop', 'post:1', sha256('1500'), $1)`, c.before)
			}
			one, two := begin(t, pool, pgx.ReadCommitted), begin(t, pool, pgx.ReadCommitted)
			exec2(t, two, "set local lock_timeout = '"+c.own+"'")
			var ran int
			if _, _, err := idem.Apply(t.Context(), one, posting, postOnce(&ran)); err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			second := applyBeside(t, two)
			select {
			case <-second.done:
			case <-time.After(8 * time.Second):
				t.Fatal("the second still waits after 8 s, want 5 s at most")
			}
			if code(second.err) != "55P03" || second.ran != 0 {
				t.Errorf("the second got %v, want 55P03", second.err)
			}
			if took := time.Since(begun); c.own == "150ms" && took > 4*time.Second {
				t.Errorf("it waited for %v, want 150 ms", took)
			}
			commit(t, one)
			three := begin(t, pool, pgx.ReadCommitted)
			exec2(t, three, "set local lock_timeout = '"+c.own+"'")
			if _, _, err := idem.Apply(t.Context(), three, posting, postOnce(&ran)); err != nil {
				t.Fatal(err)
			}
			var now string
			if err := three.QueryRow(t.Context(), "show lock_timeout").Scan(&now); err != nil || now != c.own {
				t.Errorf("lock_timeout is %s afterwards (%v), it was %s", now, err, c.own)
			}
		})
	}
}

func TestE2_whoWaitsForOneThatRollsBackRuns(t *testing.T) {
	for _, before := range []string{"", "absent"} {
		t.Run("before: "+before, func(t *testing.T) {
			pool := ledger(t)
			if before != "" {
				exec(t, pool, `insert into idem.applied_effects (scope, effect_key, input, status)
					values ('shop', 'post:1', sha256('1500'), $1)`, before)
			}
			one, two := begin(t, pool, pgx.ReadCommitted), begin(t, pool, pgx.ReadCommitted)
			var ran int
			if _, _, err := idem.Apply(t.Context(), one, posting, postOnce(&ran)); err != nil {
				t.Fatal(err)
			}
			second := applyBeside(t, two)
			blocked(t, pool)
			if err := one.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			<-second.done
			if second.err != nil || !second.applied || second.ran != 1 {
				t.Errorf("the second: applied %v, %v after %d runs", second.applied, second.err, second.ran)
			}
			commit(t, two)
			wantCount(t, pool, "select count(*) from ledger", 1)
			wantCount(t, pool, "select count(*) from idem.applied_effects where status = 'applied'", 1)
		})
	}
}

// failing are the ways in which a function given to Apply leaves half of its work.
var failing = map[string]func(ctx context.Context, tx pgx.Tx) error{
	"an error":           func(context.Context, pgx.Tx) error { return errors.New("no") },
	"a failed statement": func(ctx context.Context, tx pgx.Tx) error { _, err := tx.Exec(ctx, "select 1/0"); return err },
	"a swallowed failure": func(ctx context.Context, tx pgx.Tx) error {
		_, _ = tx.Exec(ctx, "select 1/0")
		return nil
	},
	"a panic":                  func(context.Context, pgx.Tx) error { panic("boom") },
	"its own rollback":         func(ctx context.Context, tx pgx.Tx) error { return tx.Rollback(ctx) },
	"its own commit":           func(ctx context.Context, tx pgx.Tx) error { return tx.Commit(ctx) },
	"its own commit, a panic":  func(ctx context.Context, tx pgx.Tx) error { _ = tx.Commit(ctx); panic("boom") },
	"a context that has ended": func(context.Context, pgx.Tx) error { return context.Canceled },
}

func TestE3_whatFailsLeavesNoFactAndNoHalf(t *testing.T) {
	for name, bad := range failing {
		t.Run(name, func(t *testing.T) {
			pool := ledger(t)
			tx := begin(t, pool, pgx.ReadCommitted)
			exec2(t, tx, "insert into ledger (amount) values (1)") // the caller's own
			failed := func() (failed bool) {
				defer func() {
					if recover() != nil {
						failed = true
					}
				}()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				_, applied, err := idem.Apply(ctx, tx, posting, func(ctx context.Context, tx pgx.Tx) (entry, error) {
					if name == "a context that has ended" {
						defer cancel()
					}
					if _, err := tx.Exec(ctx, "insert into ledger (amount) values (1500)"); err != nil {
						return entry{}, err
					}
					return entry{1}, bad(ctx, tx)
				})
				return err != nil && !applied
			}()
			if !failed {
				t.Error("Apply has not failed")
			}
			commit(t, tx) // as if nothing had been
			wantCount(t, pool, "select count(*) from ledger", 1)
			wantCount(t, pool, "select count(*) from idem.applied_effects", 0)
			again := begin(t, pool, pgx.ReadCommitted)
			var ran int
			if _, applied, err := idem.Apply(t.Context(), again, posting, postOnce(&ran)); err != nil || !applied || ran != 1 {
				t.Fatalf("the next call: applied %v, %v, %d runs", applied, err, ran)
			}
			commit(t, again)
			wantCount(t, pool, "select count(*) from ledger", 2)
		})
	}
}

func TestE4_anotherInputIsAMismatch(t *testing.T) {
	pool := ledger(t)
	one := begin(t, pool, pgx.ReadCommitted)
	var ran int
	if _, _, err := idem.Apply(t.Context(), one, posting, postOnce(&ran)); err != nil {
		t.Fatal(err)
	}
	commit(t, one)
	for _, other := range []any{1501, "1500", nil, 1500.5, []int{1500}} {
		e := posting
		e.Input = other
		tx := begin(t, pool, pgx.ReadCommitted)
		_, applied, err := idem.Apply(t.Context(), tx, e, postOnce(&ran))
		if !errors.Is(err, idem.ErrMismatch) || applied {
			t.Errorf("%v: applied %v, %v", other, applied, err)
		}
		commit(t, tx)
	}
	for _, other := range []func(*idem.Effect){func(e *idem.Effect) { e.Scope = "other" }, func(e *idem.Effect) { e.Key = "post:2" }} {
		e := posting
		other(&e)
		tx := begin(t, pool, pgx.ReadCommitted)
		if _, applied, err := idem.Apply(t.Context(), tx, e, postOnce(&ran)); err != nil || !applied {
			t.Errorf("%s %s: applied %v, %v", e.Scope, e.Key, applied, err)
		}
		commit(t, tx)
	}
	wantCount(t, pool, "select count(*) from ledger", 3)
	wantCount(t, pool, "select count(*) from idem.applied_effects where status = 'applied'", 3)
}

// An effect that was not applied for sure has an input all the same.
func TestE4_anotherInputOfAnAbsentEffectIsAMismatch(t *testing.T) {
	pool := ledger(t)
	exec(t, pool, `insert into idem.applied_effects (scope, effect_key, input, status)
		values ('shop', 'post:1', sha256('7'), 'absent')`)
	tx := begin(t, pool, pgx.ReadCommitted)
	var ran int
	if _, applied, err := idem.Apply(t.Context(), tx, posting, postOnce(&ran)); !errors.Is(err, idem.ErrMismatch) || applied || ran != 0 {
		t.Errorf("applied %v, %v, %d runs", applied, err, ran)
	}
	commit(t, tx)
	wantCount(t, pool, "select count(*) from idem.applied_effects where status = 'absent'", 1)
}

// What a Call has left is not done again by Apply.
func TestApply_anEffectThatACallHasLeftUnknownIsUnknown(t *testing.T) {
	pool := ledger(t)
	exec(t, pool, `insert into idem.applied_effects (scope, effect_key, input, status, downstream_key)
		values ('shop', 'post:1', sha256('1500'), 'unknown', 'x')`)
	tx := begin(t, pool, pgx.ReadCommitted)
	var ran int
	if _, _, err := idem.Apply(t.Context(), tx, posting, postOnce(&ran)); !errors.Is(err, idem.ErrOutcomeUnknown) || ran != 0 {
		t.Errorf("got %v, %d runs", err, ran)
	}
	commit(t, tx)
	wantCount(t, pool, "select count(*) from ledger", 0)
}

// One effect may apply another.
func TestApply_nests(t *testing.T) {
	pool := ledger(t)
	tx := begin(t, pool, pgx.ReadCommitted)
	var ran int
	outer := posting
	outer.Key = "outer"
	_, applied, err := idem.Apply(t.Context(), tx, outer, func(ctx context.Context, tx pgx.Tx) (entry, error) {
		got, _, err := idem.Apply(ctx, tx, posting, postOnce(&ran))
		return got, err
	})
	if err != nil || !applied || ran != 1 {
		t.Fatalf("applied %v, %v, %d runs", applied, err, ran)
	}
	commit(t, tx)
	wantCount(t, pool, "select count(*) from idem.applied_effects where status = 'applied'", 2)
}
