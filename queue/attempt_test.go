package queue_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// refusal is an error of a program's whose nil pointer is an error that cannot be read.
type refusal struct{ why string }

func (r *refusal) Error() string { return r.why }

// asked and taken are those that can be read, and not be asked what they are.
type (
	asked struct{ is bool }
	taken struct{ as bool }
)

func (*asked) Error() string   { return "asked" }
func (*taken) Error() string   { return "taken" }
func (a *asked) Is(error) bool { return a.is }
func (t *taken) As(any) bool   { return t.as }

func TestT14_anErrorThatCannotBeReadIsAPanicOfTheHandler(t *testing.T) {
	f := newFloor(t)
	kind := queue.Define[job]("job", eager)
	because := errors.New("because")
	errs := map[string]error{"nil": (*refusal)(nil), "failed": queue.Fail((*refusal)(nil)),
		"wrapped": errors.Join(because, (*asked)(nil)), "as": errors.Join(because, (*taken)(nil))}
	for _, leased := range []bool{false, true} {
		w := f.worker()
		if leased {
			kind.HandleLeased(w, func(_ context.Context, j job) error { return errs[j.Do] })
		} else {
			kind.Handle(w, func(ctx context.Context, tx pgx.Tx, j job) error { return errors.Join(runs(ctx, tx, j), errs[j.Do]) })
		}
		f.enqueue(kind, job{N: 1, Do: "nil"}, job{N: 2, Do: "wrapped"}, job{N: 3, Do: "failed"}, job{N: 4, Do: "as"})
		stop := f.run(w)
		f.untilCount(4, 10*time.Second, "select count(*) from idem.tasks where status = 'failed' and attempts = 3 and last_error like 'panic: %nil pointer%'")
		if err := stop(); err != nil {
			t.Error(err)
		}
		f.exec("delete from idem.tasks")
	}
	f.wantCount(0, "select count(*) from runs")
}

// What a function after the commit does is the program's, and takes nothing from the worker.
func TestT14_aFunctionAfterTheCommitTakesNoPlaceWithIt(t *testing.T) {
	for name, leased := range map[string]bool{"in the transaction": false, "on a lease": true} {
		t.Run(name, func(t *testing.T) {
			f := newFloor(t)
			kind := queue.Define[job]("job", queue.Options{})
			f.enqueue(kind, jobs(5, "")...)
			w := queue.NewWorker(f.db, queue.Config{Concurrency: 1, Poll: 50 * time.Millisecond})
			ran := make(chan int, 5)
			after := func(ctx context.Context, j job) {
				idem.AfterCommit(ctx, func(context.Context) { panic("no luck") })
				idem.AfterCommit(ctx, func(context.Context) { runtime.Goexit() })
				idem.AfterCommit(ctx, func(context.Context) { ran <- j.N })
			}
			if leased {
				kind.HandleLeased(w, func(ctx context.Context, j job) error { after(ctx, j); return nil })
			} else {
				kind.Handle(w, func(ctx context.Context, tx pgx.Tx, j job) error { after(ctx, j); return runs(ctx, tx, j) })
			}
			stop := f.run(w)
			f.until("all are told to be done", 10*time.Second, func() bool { return f.told(idem.TaskDone) == 5 })
			ended := stopping(stop)
			wantEnd(t, ended, nil)
			if len(ran) != 5 {
				t.Errorf("%d of the functions behind it ran, want 5", len(ran))
			}
			exits := 0
			for _, e := range f.events {
				if e.Kind == idem.EventPanic {
					exits++
				}
			}
			if exits != 10 {
				t.Errorf("%d of them are told to have panicked or left, want 10", exits)
			}
		})
	}
}

// A goroutine that a run has left behind has no part in the next one.
func TestTx_aRunThatIsOverKeepsItsOwnTransaction(t *testing.T) {
	f := newFloor(t)
	kind := queue.Define[job]("job", queue.Options{})
	for _, leased := range []bool{false, true} {
		f.enqueue(kind, job{N: 1})
		second, wrote, called := make(chan struct{}), make(chan error, 1), make(chan string, 2)
		first := true
		handle := func(ctx context.Context, j job) error {
			if first {
				first = false
				go func() { // which nobody waits for
					<-second
					idem.AfterCommit(ctx, func(context.Context) { called <- "first" })
					_, err := idem.Tx(ctx).Exec(context.Background(), "insert into runs (n, by) values (1, 'first')")
					wrote <- err
				}()
				return errors.Join(runs(ctx, idem.Tx(ctx), j), &pgconn.PgError{Code: "40001", Message: "run it again"})
			}
			idem.AfterCommit(ctx, func(context.Context) { called <- "second" })
			err := runs(ctx, idem.Tx(ctx), j)
			close(second)
			if err := <-wrote; !errors.Is(err, pgx.ErrTxClosed) {
				t.Errorf("the first run's goroutine ended with %v, want ErrTxClosed", err)
			}
			return err
		}
		w := f.worker()
		if leased {
			kind.HandleLeased(w, handle)
		} else {
			kind.Handle(w, func(ctx context.Context, _ pgx.Tx, j job) error { return handle(ctx, j) })
		}
		stop := f.run(w)
		f.untilCount(1, 10*time.Second, "select count(*) from idem.tasks where status = 'done'")
		if err := stop(); err != nil {
			t.Error(err)
		}
		if got := <-called; got != "second" || len(called) != 0 {
			t.Errorf("after the commit a function of the %s run was called, and %d more", got, len(called))
		}
		f.wantCount(1, "select count(*) from runs where by = ''")
		f.wantCount(1, "select count(*) from runs")
		f.exec("delete from idem.tasks")
		f.exec("delete from runs")
	}
}
