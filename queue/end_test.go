package queue_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
)

// eager are options of tasks that are tried again at once.
var eager = queue.Options{MaxAttempts: 3, Backoff: time.Millisecond, MaxBackoff: time.Millisecond}

func TestT14_aPanicIsAnErrorWithAStack(t *testing.T) {
	f := newFloor(t)
	kind := queue.Define[job]("job", eager)
	f.enqueue(kind, job{N: 1, Do: "panic"}, job{N: 2, Do: "goexit"}, job{N: 3})
	w := f.worker()
	kind.Handle(w, func(ctx context.Context, tx pgx.Tx, j job) error {
		if err := runs(ctx, tx, j); err != nil {
			return err
		}
		switch j.Do {
		case "panic":
			panic("no luck")
		case "goexit":
			runtime.Goexit()
		}
		return nil
	})
	stop := f.run(w)
	f.untilCount(3, 10*time.Second, "select count(*) from idem.tasks where finished_at is not null")
	f.wantCount(1, "select count(*) from idem.tasks where status = 'failed' and attempts = 3 and last_error like 'panic: no luck%end_test.go%'")
	f.wantCount(1, "select count(*) from idem.tasks where status = 'failed' and attempts = 3 and last_error like '%Goexit%'")
	f.wantCount(1, "select count(*) from runs")
	if err := stop(); err != nil {
		t.Error(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	stacks := 0
	for _, e := range f.events {
		switch {
		case e.Kind == idem.EventPanic && strings.Contains(e.Err.Error(), "end_test.go"):
			stacks++
		case e.Kind == idem.EventTask && e.Err != nil && strings.Contains(e.Err.Error(), "\n"):
			t.Errorf("the end of an attempt holds the stack again: %v", e.Err)
		}
	}
	if stacks != 3 {
		t.Errorf("%d panics are told with their stack, want 3", stacks)
	}
}

func TestT14_aHandlerThatNeverReturnsIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, leased := range map[string]bool{"in the transaction": false, "on a lease": true} {
		t.Run(name, func(t *testing.T) {
			f := newFloor(t)
			options := eager
			options.Timeout, options.MaxAttempts = 100*time.Millisecond, 2
			kind := queue.Define[job]("job", options)
			f.enqueue(kind, job{N: 1, Do: "stay"}, job{N: 2})
			let, returned := make(chan struct{}), make(chan error, 2)
			handle := func(ctx context.Context, tx pgx.Tx, j job) error {
				if err := runs(ctx, tx, j); err != nil || j.Do == "" {
					return err
				}
				<-let
				returned <- runs(context.Background(), tx, j) // which must not be written any more
				return nil
			}
			w := queue.NewWorker(f.db, queue.Config{Concurrency: 1, Poll: 50 * time.Millisecond, Grace: -1})
			if leased {
				kind.HandleLeased(w, func(ctx context.Context, j job) error { return handle(ctx, idem.Tx(ctx), j) })
			} else {
				kind.Handle(w, handle)
			}
			stop := f.run(w)
			f.untilCount(2, 20*time.Second, "select count(*) from idem.tasks where finished_at is not null")
			f.wantCount(1, "select count(*) from idem.tasks where status = 'failed' and attempts = 2 and last_error like '%Options.Timeout%'")
			if err := stop(); !errors.Is(err, queue.ErrLeft) {
				t.Errorf("Run returned %v, want ErrLeft", err)
			}
			close(let)
			for range 2 {
				if err := <-returned; err == nil {
					t.Error("a handler that was given up could write")
				}
			}
			f.wantCount(1, "select count(*) from runs")
		})
	}
}

func TestT14_aHandlerThatReturnsAfterItsDeadlineHasDoneNothing(t *testing.T) {
	f := newFloor(t)
	options := eager
	options.Timeout, options.MaxAttempts = 100*time.Millisecond, 1
	kind := queue.Define[job]("job", options)
	f.enqueue(kind, job{N: 1})
	w := f.worker()
	kind.Handle(w, func(ctx context.Context, tx pgx.Tx, j job) error {
		err := runs(ctx, tx, j)
		<-ctx.Done()
		return err
	})
	f.run(w)
	f.untilCount(1, 10*time.Second, "select count(*) from idem.tasks where status = 'failed' and last_error like '%Options.Timeout%'")
	f.wantCount(0, "select count(*) from runs")
}

func TestT15_attemptsCountHandlerStarts(t *testing.T) {
	f := newFloor(t)
	kind := queue.Define[job]("job", eager)
	id := f.enqueue(kind, job{N: 1})[0].ID
	var starts atomic.Int64
	w := f.worker()
	kind.Handle(w, func(context.Context, pgx.Tx, job) error {
		n := starts.Add(1)
		if n == 2 || n == 3 { // which cost none
			return queue.Snooze(0)
		}
		return fmt.Errorf("start %d", n)
	})
	f.run(w)
	f.untilCount(1, 10*time.Second, "select count(*) from idem.tasks where status = 'failed'")
	if got := starts.Load(); got != 5 {
		t.Errorf("the handler was started %d times, want 3 and 2 that were snoozed", got)
	}
	f.wantCount(1, "select count(*) from idem.tasks where id = $1 and attempts = 3 and takes = 5 and last_error = 'start 5'", id)
	errs := valueOf[string](f, "select string_agg(e ->> 'attempt' || ': ' || (e ->> 'error'), ', ') from idem.tasks, jsonb_array_elements(errors) as e")
	if want := "1: start 1, 2: start 4, 3: start 5"; errs != want {
		t.Errorf("the errors are %q, want %q", errs, want)
	}
	if r, s, d := f.told(idem.TaskRetried), f.told(idem.TaskSnoozed), f.told(idem.TaskFailed); r != 2 || s != 2 || d != 1 {
		t.Errorf("told of %d retried, %d snoozed, %d failed; want 2, 2, 1", r, s, d)
	}
}

func TestT16_aThousandThatFailTogetherDoNotReturnTogether(t *testing.T) {
	f := newFloor(t)
	kind := queue.Define[job]("job", queue.Options{Backoff: time.Hour})
	f.enqueue(kind, jobs(1000, "")...)
	w := f.worker()
	kind.HandleLeased(w, func(context.Context, job) error { return errors.New("all at once") })
	f.run(w)
	f.untilCount(0, 20*time.Second, "select count(*) from idem.tasks where attempts = 0")
	f.exec("delete from idem.tasks where attempts > 1 or status = 'running'") // the few whose pause was short
	spread := valueOf[float64](f, "select stddev(extract(epoch from run_at - updated_at))::float8 from idem.tasks")
	if spread < 900 || spread > 1200 { // of an even spread over an hour: 1039
		t.Errorf("they return with a deviation of %.0fs, want that of an even spread", spread)
	}
	f.wantCount(0, "select count(*) from idem.tasks where run_at - updated_at not between interval '0' and interval '1 hour'")
}

func TestT17_aHandlerDecides(t *testing.T) {
	f := newFloor(t)
	kind := queue.Define[job]("job", queue.Options{})
	f.enqueue(kind, job{N: 1, Do: "fail"}, job{N: 2, Do: "snooze"}, job{N: 3, Do: "cancel"})
	w := f.worker()
	kind.Handle(w, func(ctx context.Context, tx pgx.Tx, j job) error {
		if err := runs(ctx, tx, j); err != nil {
			return err
		}
		return fmt.Errorf("wrapped: %w", map[string]error{
			"fail": queue.Fail(errors.New("no use")), "snooze": queue.Snooze(time.Hour), "cancel": queue.Cancel}[j.Do])
	})
	f.run(w)
	f.untilCount(0, 10*time.Second, "select count(*) from idem.tasks where takes = 0 or status = 'running'")
	const one = "select count(*) from idem.tasks where convert_from(payload, 'UTF8')::json ->> 'do' = $1 and "
	f.wantCount(1, one+"status = 'failed' and attempts = 1 and last_error = 'wrapped: no use' and expires_at > finished_at + interval '29 days'", "fail")
	f.wantCount(1, one+"status = 'pending' and attempts = 0 and run_at > clock_timestamp() + interval '30 minutes' and last_error is null", "snooze")
	f.wantCount(1, one+"status = 'cancelled' and expires_at is not null", "cancel")
	f.wantCount(0, "select count(*) from runs") // whatever they decide, what they wrote is gone
}

func TestT17_aRunningTaskIsCancelled(t *testing.T) {
	for name, leased := range map[string]bool{"in the transaction": false, "on a lease": true} {
		t.Run(name, func(t *testing.T) {
			f := newFloor(t)
			kind := queue.Define[job]("job", queue.Options{Lease: 3 * time.Second})
			f.enqueue(kind, job{N: 1})
			w := f.worker()
			g := newGate()
			cause := make(chan error, 1)
			wait := func(ctx context.Context, j job) error {
				_ = g.wait(ctx, j.N)
				cause <- context.Cause(ctx)
				return nil // it does not matter what it says
			}
			if leased {
				kind.HandleLeased(w, wait)
			} else {
				kind.Handle(w, func(ctx context.Context, tx pgx.Tx, j job) error {
					return errors.Join(runs(ctx, tx, j), wait(ctx, j))
				})
			}
			f.run(w)
			g.await(t, 1)
			f.exec("update idem.tasks set cancel_at = clock_timestamp() where status = 'running'")
			f.exec("notify idem_cancel")
			if got := <-cause; !errors.Is(got, queue.ErrCancelled) {
				t.Errorf("the context ended with %v, want ErrCancelled", got)
			}
			f.untilCount(1, 10*time.Second, "select count(*) from idem.tasks where status = 'cancelled'")
			f.wantCount(0, "select count(*) from runs")
			f.until("it is told of", time.Second, func() bool { return f.told(idem.TaskCancelled) == 1 })
		})
	}
}

func TestT25_anErrorThatPostgreSQLRefusesIsStoredAllTheSame(t *testing.T) {
	f := newFloor(t)
	kind := queue.Define[job]("job", eager)
	texts := []string{"a\x00b", "broken \xff\xfe utf-8", strings.Repeat("é", 5000), "", "\xed\xa0\x80", `\u0000 and "quotes" \`}
	for i := range texts {
		f.enqueue(kind, job{N: i})
	}
	w := f.worker()
	kind.Handle(w, func(_ context.Context, _ pgx.Tx, j job) error {
		if j.N%2 == 0 {
			return queue.Fail(errors.New(texts[j.N]))
		}
		return errors.New(texts[j.N])
	})
	f.run(w)
	f.untilCount(len(texts), 10*time.Second, "select count(*) from idem.tasks where status = 'failed' and last_error <> ''")
	f.wantCount(0, "select count(*) from idem.tasks where octet_length(last_error) > 2100")
	f.wantCount(1, "select count(*) from idem.tasks where last_error like 'a_b'")
}

func TestT25_aPayloadOfAnyBytesArrives(t *testing.T) {
	f := newFloor(t)
	kind := queue.Define[[]byte]("raw", queue.Options{})
	payload := "\x00\xff\xfe\xed\xa0\x80"
	if _, err := kind.Enqueue(t.Context(), f.pool, "raw", []byte(payload)); err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 1)
	w := f.worker()
	kind.HandleLeased(w, func(_ context.Context, b []byte) error {
		got <- string(b)
		return nil
	})
	f.run(w)
	select {
	case b := <-got:
		if b != payload {
			t.Errorf("got %q, want %q", b, payload)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it does not arrive")
	}
	f.untilCount(1, 10*time.Second, "select count(*) from idem.tasks where status = 'done'")
}
