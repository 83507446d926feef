package queue_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
)

// counted is a call of an effect that counts itself, and ends as it is told.
func counted(calls *atomic.Int64, ends func() error) func(context.Context, string) (int64, error) {
	return func(context.Context, string) (int64, error) {
		n := calls.Add(1)
		if ends == nil {
			return n, nil
		}
		return n, ends()
	}
}

var errHungUp = errors.New("the bank hung up")

// Two tasks that a worker has taken together call one effect: the second waits for the
// first, and that is no attempt. The tasks of one take have one fence.
func TestCall_anEffectInFlightInAnotherTaskSnoozesThisOne(t *testing.T) {
	t.Parallel()
	for _, card := range []string{"tok_ok", "tok_keyless"} {
		t.Run(card, func(t *testing.T) {
			t.Parallel()
			r := newEffectRig(t)
			k := queue.Define[order]("charge", quick())
			one := queue.Task[order]{Key: "1", Payload: order{"1", card}}
			two := queue.Task[order]{Key: "2", Payload: order{"1", card}}
			if _, err := k.EnqueueMany(t.Context(), r.pool, one, two); err != nil {
				t.Fatal(err)
			}
			g := newEffectGate(t)
			var calls atomic.Int64
			r.work(func(w *queue.Worker) {
				k.HandleLeased(w, func(ctx context.Context, o order) error {
					got, err := idem.Call(ctx, o.effect(), counted(&calls, func() error { g.pass(); return nil }))
					if err == nil && got != 1 {
						t.Errorf("got %d", got)
					}
					return nil // which must not be believed
				})
			})
			g.await(t)
			r.await("the other was put off twice", func() bool { return r.tasks(idem.TaskSnoozed) >= 2 })
			r.want(2, "select count(*) from idem.tasks where attempts = 0 and finished_at is null")
			r.want(1, "select count(*) from idem.applied_effects where status = 'started' and calls = 1")
			g.open()
			r.await("both are done", func() bool { return r.tasks(idem.TaskDone) == 2 })
			r.want(2, "select count(*) from idem.tasks where status = 'done' and attempts = 1")
			if calls.Load() != 1 || r.effects(idem.EffectSkipped) != 1 || r.effects(idem.EffectUnknown)+r.effects(idem.EffectFenced) != 0 {
				t.Errorf("%d calls, %d skipped", calls.Load(), r.effects(idem.EffectSkipped))
			}
		})
	}
}

// What a request has in flight puts a task off, too, on a lease or not, and the other way
// round the request is told.
func TestCall_anEffectInFlightBehindTheOtherDoor(t *testing.T) {
	t.Parallel()
	r := newEffectRig(t)
	o := order{"1", "tok_ok"}
	guard, err := idemhttp.New(r.db, idemhttp.Config{Scope: idemhttp.Public()})
	if err != nil {
		t.Fatal(err)
	}
	gates := []*effectGate{newEffectGate(t), newEffectGate(t)}
	var calls atomic.Int64
	call := func(ctx context.Context, o order) error {
		_, err := idem.Call(ctx, o.effect(), counted(&calls, func() error { gates[len(o.ID)-1].pass(); return nil }))
		return err
	}
	pay := guard.Route(idemhttp.Route{Name: "POST /payments", Lease: time.Minute})(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_ = call(req.Context(), order{strings.TrimPrefix(req.URL.Path, "/"), o.Card})
		w.WriteHeader(http.StatusCreated)
	}))
	send := func(path string) (status int) {
		req := httptest.NewRequest(http.MethodPost, path, strings.NewReader("{}"))
		req.Header.Set("Idempotency-Key", "k"+strings.Trim(path, "/"))
		w := httptest.NewRecorder()
		pay.ServeHTTP(w, req)
		return w.Code
	}
	k, tx := queue.Define[order]("charge", quick()), queue.Define[order]("apply", quick())
	r.work(func(w *queue.Worker) {
		k.HandleLeased(w, call)
		tx.Handle(w, func(ctx context.Context, tx pgx.Tx, o order) error {
			_, _, err := idem.Apply(ctx, tx, o.effect(), func(context.Context, pgx.Tx) (int64, error) { t.Error("applied, too"); return 0, nil })
			return err
		})
	})
	first := make(chan int, 1)
	go func() { first <- send("/1") }()
	gates[0].await(t)
	leased, applied := r.enqueueOrder(k, o), r.enqueueOrder(tx, o)
	r.await("both tasks were put off", func() bool {
		for _, id := range []int64{leased, applied} {
			if len(r.told(func(e idem.Event) bool { return e.TaskID == id && e.TaskResult == idem.TaskSnoozed })) == 0 {
				return false
			}
		}
		return true
	})
	gates[0].open()
	r.awaitStatus(leased, queue.StatusDone, 1)
	r.awaitStatus(applied, queue.StatusDone, 1)
	if got := <-first; got != http.StatusCreated {
		t.Errorf("the request got %d", got)
	}
	id := r.enqueueOrder(k, order{"22", o.Card})
	gates[1].await(t)
	if got := send("/22"); got != http.StatusTooEarly {
		t.Errorf("a request beside the task got %d, want 425", got)
	}
	gates[1].open()
	r.awaitStatus(id, queue.StatusDone, 1)
	if got := send("/22"); got != http.StatusCreated || calls.Load() != 2 {
		t.Errorf("the request's retry got %d after %d calls", got, calls.Load())
	}
}

// A handler that returns nil although a call of its ended unknown, or has not ended, is
// not believed.
func TestCall_aTaskIsNotDoneOverACallOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		handle func(ctx context.Context, o order, calls *atomic.Int64) error
		says   string
	}{
		"unknown": {says: "unknown", handle: func(ctx context.Context, o order, calls *atomic.Int64) error {
			_, _ = idem.Call(ctx, o.effect(), counted(calls, func() error { return errHungUp }))
			return nil
		}},
		"unknown, and something written": {says: "unknown", handle: func(ctx context.Context, o order, calls *atomic.Int64) error {
			_, _ = idem.Call(ctx, o.effect(), counted(calls, func() error { return errHungUp }))
			_, err := idem.Tx(ctx).Exec(ctx, "insert into postings (account, amount) values ('sales', 1)")
			return err
		}},
		"unknown, and a serialization failure": {says: "40001", handle: func(ctx context.Context, o order, calls *atomic.Int64) error {
			_, _ = idem.Call(ctx, o.effect(), counted(calls, func() error { return errHungUp }))
			_, err := idem.Tx(ctx).Exec(ctx, "do $$ begin raise sqlstate '40001'; end $$")
			return err
		}},
		"unknown, and another error": {says: "something else", handle: func(ctx context.Context, o order, calls *atomic.Int64) error {
			_, _ = idem.Call(ctx, o.effect(), counted(calls, func() error { return errHungUp }))
			return errors.New("something else")
		}},
		"unknown in a panic": {says: "panic: boom", handle: func(ctx context.Context, o order, calls *atomic.Int64) error {
			_, _ = idem.Call(ctx, o.effect(), counted(calls, func() error { panic("boom") }))
			return nil
		}},
		"under way": {says: "the call has not ended", handle: func(ctx context.Context, o order, calls *atomic.Int64) error {
			begun := make(chan struct{})
			go func() {
				_, _ = idem.Call(ctx, o.effect(), counted(calls, func() error { close(begun); <-ctx.Done(); return ctx.Err() }))
			}()
			select {
			case <-begun:
			case <-ctx.Done():
			}
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newEffectRig(t)
			options := quick()
			options.MaxAttempts = 1
			k := queue.Define[order]("charge", options)
			var calls, starts atomic.Int64
			r.work(func(w *queue.Worker) {
				k.HandleLeased(w, func(ctx context.Context, o order) error {
					starts.Add(1)
					return c.handle(ctx, o, &calls)
				})
			})
			o := order{"1", "tok_keyless"}
			r.awaitStatus(r.enqueueOrder(k, o), queue.StatusFailed, 1)
			if calls.Load() != 1 || starts.Load() != 1 {
				t.Errorf("%d calls in %d runs, want one", calls.Load(), starts.Load())
			}
			r.want(1, "select count(*) from idem.tasks where last_error like '%' || $1 || '%'", c.says)
			r.want(0, "select count(*) from postings")
		})
	}
}

// A decision of the handler's own counts before what an effect has come to.
func TestCall_theHandlersDecisionCounts(t *testing.T) {
	t.Parallel()
	r := newEffectRig(t)
	k := queue.Define[order]("charge", quick())
	g := newEffectGate(t)
	r.work(func(w *queue.Worker) {
		k.HandleLeased(w, func(ctx context.Context, o order) error {
			if o.Card == "" {
				_, err := idem.Call(ctx, o.effect(), counted(new(atomic.Int64), func() error { g.pass(); return nil }))
				return err
			}
			return map[string]error{"fail": queue.Fail(idem.ErrInFlight), "cancel": fmt.Errorf("%w: %w", queue.Cancel, idem.ErrInFlight)}[o.Card]
		})
	})
	first := r.enqueueOrder(k, order{"1", ""})
	g.await(t)
	r.awaitStatus(r.enqueueOrder(k, order{"1", "fail"}), queue.StatusFailed, 1)
	r.awaitStatus(r.enqueueOrder(k, order{"1", "cancel"}), queue.StatusCancelled, 1)
	g.open()
	r.awaitStatus(first, queue.StatusDone, 1)
}

// A handler that calls an effect twice at once waits for nobody but itself: that is an
// attempt.
func TestCall_twiceAtOnceInOneHandlerIsAnAttempt(t *testing.T) {
	t.Parallel()
	r := newEffectRig(t)
	options := quick()
	options.MaxAttempts = 2
	k := queue.Define[order]("charge", options)
	r.work(func(w *queue.Worker) {
		k.HandleLeased(w, func(ctx context.Context, o order) error {
			begun, refused := make(chan struct{}), make(chan struct{})
			var first sync.WaitGroup
			first.Go(func() {
				_, _ = idem.Call(ctx, o.effect(), func(context.Context, string) (int, error) {
					close(begun)
					<-refused
					return 0, idem.NotApplied(errors.New("not now"))
				})
			})
			<-begun
			_, err := idem.Call(ctx, o.effect(), func(context.Context, string) (int, error) { return 0, nil })
			close(refused)
			first.Wait()
			if !errors.Is(err, idem.ErrInFlight) {
				t.Errorf("the second call: %v", err)
			}
			return err
		})
	})
	r.awaitStatus(r.enqueueOrder(k, order{"1", "tok_ok"}), queue.StatusFailed, 2)
	if r.tasks(idem.TaskSnoozed) != 0 {
		t.Error("the task was put off")
	}
}

// What is called in the wrong place is an error that writes nothing.
func TestCall_inTheWrongPlaceOfATaskIsAnError(t *testing.T) {
	t.Parallel()
	r := newEffectRig(t)
	o := order{"1", "tok_ok"}
	never := func(context.Context, string) (int, error) { t.Error("the call was made"); return 0, nil }
	in, final, nested := queue.Define[order]("in", quick()), queue.Define[order]("final", quick()), queue.Define[order]("nested", quick())
	after := make(chan struct{})
	r.work(func(w *queue.Worker) {
		in.Handle(w, func(ctx context.Context, tx pgx.Tx, _ order) error {
			if _, err := idem.Call(ctx, o.effect(), never); !errors.Is(err, idem.ErrNoLease) || !strings.Contains(err.Error(), "HandleLeased") {
				t.Errorf("in the transaction: %v", err)
			}
			return nil
		})
		final.HandleLeased(w, func(ctx context.Context, _ order) error {
			if _, _, ok := idem.KeyOf(ctx); ok {
				t.Error("a task has the key of a request")
			}
			idem.AfterCommit(ctx, func(done context.Context) {
				defer close(after)
				if _, err := idem.Call(done, o.effect(), never); !errors.Is(err, idem.ErrNoLease) {
					t.Errorf("after the commit: %v", err)
				}
				if _, err := idem.Call(context.WithoutCancel(ctx), o.effect(), never); err == nil {
					t.Error("after the commit, in the handler's context: no error")
				}
				err := pgx.BeginFunc(done, r.pool, func(tx pgx.Tx) error {
					_, _, err := idem.Apply(done, tx, idem.Effect{Scope: "shop", Key: "after"}, func(context.Context, pgx.Tx) (int, error) { return 1, nil })
					return err
				})
				if err != nil {
					t.Errorf("Apply after the commit: %v", err)
				}
			})
			if _, err := idem.Tx(ctx).Exec(ctx, "select 1"); err != nil {
				t.Error(err)
			}
			if _, err := idem.Call(ctx, o.effect(), never); !errors.Is(err, idem.ErrFinal) {
				t.Errorf("in the final transaction: %v", err)
			}
			err := pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
				_, _, err := idem.Apply(ctx, tx, idem.Effect{Scope: "shop", Key: "beside"}, func(context.Context, pgx.Tx) (int, error) { return 1, nil })
				return err
			})
			if !errors.Is(err, idem.ErrFinal) {
				t.Errorf("Apply beside the final transaction: %v", err)
			}
			return nil
		})
		nested.Handle(w, func(ctx context.Context, tx pgx.Tx, _ order) error {
			_, _, err := idem.Apply(ctx, tx, idem.Effect{Scope: "shop", Key: "outer"}, func(ctx context.Context, tx pgx.Tx) (int, error) {
				got, _, err := idem.Apply(ctx, tx, idem.Effect{Scope: "shop", Key: "inner"}, func(context.Context, pgx.Tx) (int, error) { return 1, nil })
				return got, err
			})
			return err
		})
	})
	for _, k := range []*queue.Kind[order]{in, final, nested} {
		r.awaitStatus(r.enqueueOrder(k, o), queue.StatusDone, 1)
	}
	<-after
	r.want(0, "select count(*) from idem.applied_effects where effect_key like 'charge:%' or effect_key = 'beside'")
	r.want(3, "select count(*) from idem.applied_effects where status = 'applied'")
}

// A task of which nothing is kept is kept while an effect that it has called in an earlier
// attempt is unsettled.
func TestCall_aForgottenTaskIsKeptForItsUnsettledEffect(t *testing.T) {
	t.Parallel()
	r := newEffectRig(t)
	options := quick()
	options.Retention = queue.Forget
	k := queue.Define[order]("charge", options)
	var calls, starts atomic.Int64
	r.work(func(w *queue.Worker) {
		k.HandleLeased(w, func(ctx context.Context, o order) error {
			if starts.Add(1) > 1 {
				return nil // it does not call again
			}
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			_, err := idem.Call(ctx, o.effect(), counted(&calls, func() error { cancel(); return errHungUp }))
			return err
		})
	})
	o := order{"1", "tok_ok"}
	r.awaitStatus(r.enqueueOrder(k, o), queue.StatusDone, 2)
	r.wantEffect(o, "started")
	if swept, err := idem.Sweep(t.Context(), r.db); err != nil || swept.Tasks != 0 {
		t.Errorf("swept %+v, %v", swept, err)
	}
	r.exec("update idem.applied_effects set status = 'unknown'")
	r.exec("update idem.applied_effects set status = 'absent'")
	if swept, err := idem.Sweep(t.Context(), r.db); err != nil || swept.Tasks != 1 {
		t.Errorf("swept %+v, %v", swept, err)
	}
}
