package queue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
)

// stopping runs stop beside the test.
func stopping(stop func() error) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	return ended
}

// wantEnd waits for the end of a worker.
func wantEnd(t *testing.T, ended <-chan error, want error) {
	t.Helper()
	select {
	case err := <-ended:
		if !errors.Is(err, want) {
			t.Errorf("Run returned %v, want %v", err, want)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("Run does not return")
	}
}

func TestT19_whatRunsEndsWithinTheGraceAndTheRestIsGivenBackAtOnce(t *testing.T) {
	f := newFloor(t)
	kind := queue.Define[job]("job", queue.Options{})
	f.enqueue(kind, jobs(40, "")...)
	w := queue.NewWorker(f.db, queue.Config{Concurrency: 4, Poll: 50 * time.Millisecond, Grace: 20 * time.Second})
	g := newGate()
	kind.Handle(w, func(ctx context.Context, tx pgx.Tx, j job) error {
		return errors.Join(g.wait(ctx, j.N), runs(ctx, tx, j))
	})
	stop := f.run(w)
	g.await(t, 4)
	ended := stopping(stop)
	// The four are at the gate; whatever else the worker had is to be taken again.
	f.untilCount(4, 5*time.Second, "select count(*) from idem.tasks where status = 'running'")
	f.untilCount(36, time.Second, "select count(*) from idem.tasks where status = 'pending' and attempts = 0")
	select {
	case err := <-ended:
		t.Fatalf("Run returned %v while handlers were running", err)
	default:
	}
	close(g.open)
	wantEnd(t, ended, nil)
	f.wantCount(4, "select count(*) from idem.tasks where status = 'done' and attempts = 1")
	f.wantCount(36, "select count(*) from idem.tasks where status = 'pending' and attempts = 0")
	f.wantCount(4, "select count(*) from runs")
	f.wantCount(0, "select count(*) from idem.takes")
}

func TestT19_handlersOverTheGraceAreToldAndTheirTasksGivenBack(t *testing.T) {
	for name, leased := range map[string]bool{"in the transaction": false, "on a lease": true} {
		t.Run(name, func(t *testing.T) {
			f := newFloor(t)
			kind := queue.Define[job]("job", queue.Options{})
			f.enqueue(kind, jobs(3, "")...)
			w := queue.NewWorker(f.db, queue.Config{Poll: 50 * time.Millisecond, Grace: 100 * time.Millisecond})
			g := newGate()
			causes := make(chan error, 3)
			handle := func(ctx context.Context, tx pgx.Tx, j job) error {
				err := g.wait(ctx, j.N)
				causes <- context.Cause(ctx)
				return err
			}
			if leased {
				kind.HandleLeased(w, func(ctx context.Context, j job) error { return handle(ctx, nil, j) })
			} else {
				kind.Handle(w, func(ctx context.Context, tx pgx.Tx, j job) error {
					return errors.Join(runs(ctx, tx, j), handle(ctx, tx, j))
				})
			}
			stop := f.run(w)
			g.await(t, 3)
			wantEnd(t, stopping(stop), nil)
			for range 3 {
				if cause := <-causes; !errors.Is(cause, queue.ErrDraining) {
					t.Errorf("a context ended with %v, want ErrDraining", cause)
				}
			}
			f.wantCount(3, "select count(*) from idem.tasks where status = 'pending' and attempts = 0 and run_at <= clock_timestamp()")
			f.wantCount(0, "select count(*) from runs")
			f.wantCount(0, "select count(*) from idem.takes")
			if got := f.told(idem.TaskSnoozed); got != 3 {
				t.Errorf("%d are told as given back, want 3", got)
			}
		})
	}
}

func TestT19_aHandlerThatDoesNotHeedIsLeftBehind(t *testing.T) {
	f := newFloor(t)
	kind := queue.Define[job]("job", queue.Options{})
	f.enqueue(kind, job{N: 1})
	w := queue.NewWorker(f.db, queue.Config{Poll: 50 * time.Millisecond, Grace: -1})
	entered, let := make(chan struct{}), make(chan struct{})
	wrote := make(chan error)
	kind.Handle(w, func(ctx context.Context, tx pgx.Tx, j job) error {
		err := runs(ctx, tx, j)
		close(entered)
		<-let
		wrote <- errors.Join(err, runs(context.Background(), tx, j))
		return nil
	})
	stop := f.run(w)
	<-entered
	wantEnd(t, stopping(stop), queue.ErrLeft)
	f.wantCount(1, "select count(*) from idem.tasks where status = 'pending' and attempts = 0")
	close(let)
	if err := <-wrote; err == nil {
		t.Error("it could write after Run had returned")
	}
	f.wantCount(0, "select count(*) from runs")
}

func TestT19_whatWasFinishedLastIsRecorded(t *testing.T) {
	f := newFloor(t)
	kind := queue.Define[job]("job", queue.Options{Retention: queue.Forget})
	f.enqueue(kind, jobs(6000, "")...)
	w := f.worker()
	started := make(chan struct{}, 6000)
	kind.HandleLeased(w, func(context.Context, job) error {
		started <- struct{}{}
		return nil
	})
	stop := f.run(w)
	for range 2500 { // so that it keeps some beside those that run
		<-started
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	done := 2500 + len(started)
	f.wantCount(6000-done, "select count(*) from idem.tasks")
	f.wantCount(6000-done, "select count(*) from idem.tasks where status = 'pending' and attempts = 0")
	f.wantCount(0, "select count(*) from idem.takes")
	if got := f.told(idem.TaskDone); got != done {
		t.Errorf("%d are told to be done, want the %d that were started", got, done)
	}
}

// A worker ends in time also when the database is away.
func TestT19_theDatabaseIsAwayAtTheEnd(t *testing.T) {
	f := newFloor(t)
	db, proxy := f.through(t)
	kind := queue.Define[job]("job", queue.Options{Lease: shortLease})
	f.enqueue(kind, jobs(3, "")...)
	w := queue.NewWorker(db, queue.Config{Concurrency: 2, Grace: -1, Poll: 50 * time.Millisecond})
	g := newGate()
	kind.HandleLeased(w, func(ctx context.Context, j job) error { return g.wait(ctx, j.N) })
	stop := f.run(w)
	g.await(t, 2)
	if err := proxy.Close(); err != nil {
		t.Fatal(err)
	}
	wantEnd(t, stopping(stop), nil)
	f.wantCount(0, "select count(*) from idem.tasks where status = 'done'")
}
