package idemsql_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/adapters/idemsql"
	"github.com/idem-go/idem/idemhttp"
)

var errOwn = errors.New("the handler's own")

func TestQ1_Q2_rowsAndAnswerAreOneAndRepeatsGetIt(t *testing.T) {
	for name, d := range doors(t) {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, idemhttp.Route{}, func(ctx context.Context, _ int64) error {
				if err := d.run(ctx, insert, 1); err != nil {
					return err
				}
				return d.within(ctx, func(run runner) error { return run(ctx, insert, 2) })
			})
			first := r.send("k", "a")
			r.want(first, 201, "")
			second := r.send("k", "a")
			if second.status != 201 || !second.replayed || second.body != first.body {
				t.Errorf("the repeat got %+v, want %+v replayed", second, first)
			}
			r.want(r.send("k", "b"), 409, "key-mismatch")
			r.wantCounts(2, 1)
		})
	}
}

func TestRollback_whatIsNotRememberedChangedNothing(t *testing.T) {
	for name, d := range doors(t) {
		t.Run(name, func(t *testing.T) {
			var status atomic.Int64
			r := newRig(t, idemhttp.Route{}, func(ctx context.Context, _ int64) error {
				if err := errors.Join(d.run(ctx, insert, 1), d.within(ctx, func(run runner) error { return run(ctx, insert, 2) })); err != nil {
					return err
				}
				switch s := status.Load(); s {
				case 0:
					panic("boom")
				case 201:
					return nil
				default:
					return answer(s)
				}
			})
			for _, s := range []int64{422, 500, 0} {
				status.Store(s)
				want := int(s)
				if s == 0 {
					want = 418 // the program's own recoverer has seen it
				}
				r.want(r.send("k", "a"), want, "")
				r.wantCounts(0, 0)
			}
			status.Store(201)
			r.want(r.send("k", "a"), 201, "")
			r.wantCounts(2, 1)
		})
	}
}

func TestBeginTx_rollbackUndoesOnlyWhatWasWrittenSince(t *testing.T) {
	for name, d := range doors(t) {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, idemhttp.Route{}, func(ctx context.Context, _ int64) error {
				if err := d.run(ctx, insert, 1); err != nil {
					return err
				}
				err := d.within(ctx, func(run runner) error {
					return errors.Join(run(ctx, insert, 2), run(ctx, "select 1/0"))
				})
				if err == nil {
					return errors.New("a division by zero has no error")
				}
				if err := d.within(ctx, func(run runner) error { return errors.Join(run(ctx, insert, 3), errOwn) }); !errors.Is(err, errOwn) {
					return err
				}
				return d.run(ctx, insert, 4)
			})
			r.want(r.send("k", "a"), 201, "")
			r.wantCounts(2, 1)
		})
	}
}

func TestP12_failuresOfStatementsAreSeen(t *testing.T) {
	for name, d := range doors(t) {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, idemhttp.Route{}, func(ctx context.Context, run int64) error {
				if run == 1 {
					return d.run(ctx, "do $$ begin raise exception 'lost a race' using errcode = '40001'; end $$")
				}
				return d.run(ctx, insert, 1)
			})
			r.want(r.send("k", "a"), 201, "")
			if n := r.runs.Load(); n != 2 {
				t.Errorf("the handler ran %d times, want 2", n)
			}
			r.wantCounts(1, 1)
			r = newRig(t, idemhttp.Route{}, func(ctx context.Context, run int64) error {
				return d.run(ctx, "do $$ begin raise exception 'no lock' using errcode = '55P03'; end $$")
			})
			r.want(r.send("k", "a"), 503, "unavailable")
			r.wantCounts(0, 0)
		})
	}
}

func TestLazyClaim_repeatsGetTheStoredAnswer(t *testing.T) {
	for name, d := range doors(t) {
		t.Run(name, func(t *testing.T) {
			var lastly atomic.Value
			r := newRig(t, idemhttp.Route{LazyClaim: true}, func(ctx context.Context, _ int64) error {
				err := d.run(ctx, insert, 1)
				lastly.Store(errors.Is(err, idem.ErrAnswered))
				return err
			})
			r.want(r.send("k", "a"), 201, "")
			if got := r.send("k", "a"); got.status != 201 || !got.replayed || got.body != "run 1" {
				t.Errorf("the repeat got %+v", got)
			}
			if lastly.Load() != true {
				t.Error("the repeat's statement did not return idem.ErrAnswered")
			}
			r.wantCounts(1, 1)
		})
	}
}

func TestOpen_outsideAGuardedHandlerThereIsNoTransaction(t *testing.T) {
	for name, d := range doors(t) {
		if err := d.run(t.Context(), "select 1"); !errors.Is(err, idem.ErrNoExecution) {
			t.Errorf("%s: got %v, want idem.ErrNoExecution", name, err)
		}
	}
	if tx, err := idemsql.Tx(t.Context()); tx != nil || !errors.Is(err, idem.ErrNoExecution) {
		t.Errorf("Tx: got %v, %v, want idem.ErrNoExecution", tx, err)
	}
}

func TestBeginTx_contextThatEndsFirstMakesTheRequestNotApplied(t *testing.T) {
	db := idemsql.Open()
	t.Cleanup(func() { _ = db.Close() })
	r := newRig(t, idemhttp.Route{}, func(ctx context.Context, _ int64) error {
		own, cancel := context.WithCancel(ctx)
		defer cancel()
		tx, err := db.BeginTx(own, nil)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, insert, 1); err != nil {
			return err
		}
		cancel()
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
			if _, err := db.ExecContext(ctx, "select 1"); err != nil {
				return nil // database/sql has rolled back
			}
		}
		return errors.New("it never rolled back")
	})
	r.want(r.send("k", "a"), 500, "not-applied")
	r.wantCounts(0, 0)
}

func TestLimit_handlerThatIsGivenUpLeavesNothing(t *testing.T) {
	for name, d := range doors(t) {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, idemhttp.Route{Limit: 300 * time.Millisecond}, func(ctx context.Context, _ int64) error {
				return errors.Join(d.run(ctx, insert, 1), d.within(ctx, func(run runner) error { return run(ctx, "select pg_sleep(20)") }))
			})
			r.want(r.send("k", "a"), 503, "unavailable")
			r.wantCounts(0, 0)
		})
	}
}
