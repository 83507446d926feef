package idemtest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemtest"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

var (
	obey  = queue.Define[string]("obey", queue.Options{MaxAttempts: 2, Backoff: time.Hour})
	trace = queue.Define[string]("trace", queue.Options{Retention: queue.Forget})
	other = queue.Define[[]byte]("other", queue.Options{Queue: "elsewhere"})
)

// obedient is a worker whose handler does what the payload says.
func obedient(ctx context.Context, pool *pgxpool.Pool) (*queue.Worker, error) {
	db, err := idem.Open(ctx, pool, idem.Config{})
	if err != nil {
		return nil, err
	}
	w := queue.NewWorker(db, queue.Config{})
	handle := func(ctx context.Context, tx pgx.Tx, order string) error {
		switch order {
		case "retry":
			return errors.New("not today")
		case "snooze":
			return queue.Snooze(time.Minute)
		case "fail":
			return queue.Fail(errors.New("never"))
		case "cancel":
			return queue.Cancel
		case "enqueue":
			for i := range 3 {
				if _, err := obey.Enqueue(ctx, tx, fmt.Sprint("follow:", i), "retry"); err != nil {
					return err
				}
			}
		}
		_, err := tx.Exec(ctx, "insert into orders (amount) values (1)")
		return err
	}
	obey.Handle(w, handle)
	trace.Handle(w, handle)
	return w, nil
}

// asked is a database with a task of a key for each order, which says what it is to do.
func asked(t *testing.T, orders ...string) *pgxpool.Pool {
	t.Helper()
	pool := idemtest.New(t, tables).Pool()
	for _, order := range orders {
		if _, err := obey.Enqueue(t.Context(), pool, order, order); err != nil {
			t.Fatal(err)
		}
	}
	return pool
}

func TestRunTask_saysHowTheAttemptHasEnded(t *testing.T) {
	t.Parallel()
	pool := asked(t, "do", "retry", "snooze", "fail", "cancel")
	for key, want := range map[string]idemtest.Attempt{
		"do":     {Status: queue.StatusDone, Attempts: 1},
		"retry":  {Status: queue.StatusPending, Attempts: 1, Err: errors.New("not today")},
		"snooze": {Status: queue.StatusPending},
		"fail":   {Status: queue.StatusFailed, Attempts: 1, Err: errors.New("never")},
		"cancel": {Status: queue.StatusCancelled, Attempts: 1, Err: queue.Cancel},
	} {
		got := idemtest.RunTask(t, pool, obedient, obey, key)
		if got.Key != key || got.Status != want.Status || got.Attempts != want.Attempts || fmt.Sprint(got.Err) != fmt.Sprint(want.Err) {
			t.Errorf("%s: got %v, want %v", key, got, want)
		}
		if waits := got.Wait > 0; waits != (got.Status == queue.StatusPending) || got.Wait > time.Hour {
			t.Errorf("%s: it is due in %v", key, got.Wait)
		}
	}
	if err := one(t.Context(), pool); err != nil { // of the one that was done
		t.Error(err)
	}
}

func TestRunTask_ofWhichNothingIsKept(t *testing.T) {
	t.Parallel()
	pool := asked(t)
	if _, err := trace.Enqueue(t.Context(), pool, queue.Unkeyed, "do"); err != nil {
		t.Fatal(err)
	}
	if got := idemtest.RunTask(t, pool, obedient, trace, queue.Unkeyed); got.Status != queue.StatusDone || got.Attempts != 1 || got.Key != "" {
		t.Errorf("got %v, want done", got)
	}
	idemtest.NotEnqueued(t, pool, trace, "")
}

// TestRunTask_takesNoOtherTask wants one task to be run, whatever lies before and behind
// it in the order, and what it enqueues to be left alone.
func TestRunTask_takesNoOtherTask(t *testing.T) {
	t.Parallel()
	pool := asked(t, "retry", "enqueue", "fail")
	if got := idemtest.RunTask(t, pool, obedient, obey, "enqueue"); got.Status != queue.StatusDone {
		t.Errorf("got %v, want done", got)
	}
	var takes, kept string
	err := pool.QueryRow(t.Context(), `select string_agg(task_key || ' ' || takes, ', ' order by id), (select count(*) from idem.takes)
		from idem.tasks`).Scan(&takes, &kept)
	if want := "retry 0, enqueue 1, fail 0, follow:0 0, follow:1 0, follow:2 0"; err != nil || takes != want || kept != "0" {
		t.Errorf("taken were %s, %s takes are kept (%v); want %s and 0", takes, kept, err, want)
	}
	if got := idemtest.RunTask(t, pool, obedient, obey, ""); got.Key != "retry" {
		t.Errorf("next came %v, want retry", got)
	}
}

func TestMakeDue_aTaskThatWaits(t *testing.T) {
	t.Parallel()
	pool := asked(t, "retry")
	_, err := obey.EnqueueMany(t.Context(), pool, queue.Task[string]{Key: "later", Payload: "do", Delay: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	idemtest.MakeDue(t, pool, obey, "later")
	if got := idemtest.RunTask(t, pool, obedient, obey, "later"); got.Status != queue.StatusDone {
		t.Errorf("got %v, want done", got)
	}
	for attempt, want := range []queue.Status{queue.StatusPending, queue.StatusFailed} {
		idemtest.MakeDue(t, pool, obey, "retry")
		if got := idemtest.RunTask(t, pool, obedient, obey, "retry"); got.Status != want || got.Attempts != attempt+1 {
			t.Errorf("got %v, want %s after %d attempts", got, want, attempt+1)
		}
	}
}

func TestEnqueued_readsThePayload(t *testing.T) {
	t.Parallel()
	pool := asked(t, "do")
	idemtest.NotEnqueued(t, pool, other, "raw")
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if _, err := other.Enqueue(t.Context(), tx, "raw", []byte{0, 1}); err != nil {
			return err
		}
		if got := idemtest.Enqueued(t, tx, other, "raw"); string(got) != "\x00\x01" {
			t.Errorf("got %q, want two bytes", got)
		}
		idemtest.NotEnqueued(t, pool, other, "") // out there it is not
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := idemtest.Enqueued(t, pool, obey, "do"); got != "do" {
		t.Errorf("got %q, want do", got)
	}
}

func TestTasks_sayWhatIsWrong(t *testing.T) {
	t.Parallel()
	pool := asked(t, "do", "fail")
	_, err := obey.EnqueueMany(t.Context(), pool, queue.Task[string]{Key: "later", Payload: "do", Delay: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Enqueue(t.Context(), pool, "raw", []byte("no JSON")); err != nil {
		t.Fatal(err)
	}
	idemtest.RunTask(t, pool, obedient, obey, "fail")
	elsewhere := func(context.Context, *pgxpool.Pool) (*queue.Worker, error) {
		return obedient(t.Context(), idemtest.New(t, tables).Pool())
	}
	run := func(w idemtest.NewWorker, kind idemtest.Kind, key string) func(testing.TB) {
		return func(t testing.TB) { idemtest.RunTask(t, pool, w, kind, key) }
	}
	for name, c := range map[string]struct {
		do    func(t testing.TB)
		words []string
	}{
		"a key that is not there": {run(obedient, obey, "none"), []string{"there is no such task", `kind obey and key "none"`, "the queue default holds 1 obey (failed), 2 obey (pending)"}},
		"one that waits":          {run(obedient, obey, "later"), []string{"is due in ", "MakeDue makes it due"}},
		"one that is over":        {run(obedient, obey, "fail"), []string{"cannot be taken: it is failed"}},
		"over, to be made due":    {func(t testing.TB) { idemtest.MakeDue(t, pool, obey, "fail") }, []string{"does not wait to be taken: it is failed"}},
		"no handler":              {run(obedient, other, "raw"), []string{"no handler for the kind other in the queue elsewhere"}},
		"another database":        {run(elsewhere, obey, "do"), []string{"does it use the pool that it gets?"}},
		"no worker": {run(func(context.Context, *pgxpool.Pool) (*queue.Worker, error) { return nil, nil }, obey, "do"),
			[]string{"the worker: it returned no worker"}},
		"a worker that cannot run": {run(func(ctx context.Context, pool *pgxpool.Pool) (*queue.Worker, error) {
			w, err := obedient(ctx, pool)
			obey.Handle(w, nil)
			return w, err
		}, obey, "do"), []string{"ended by itself", "the handler is nil"}},
		"enqueued, and it is not":     {func(t testing.TB) { idemtest.Enqueued(t, pool, other, "none") }, []string{`kind other and key "none"`}},
		"not enqueued, and it is":     {func(t testing.TB) { idemtest.NotEnqueued(t, pool, obey, "do") }, []string{"of kind obey, key \"do\" (pending)"}},
		"a payload of another type":   {func(t testing.TB) { idemtest.Enqueued(t, pool, queue.Define[int]("obey", queue.Options{}), "do") }, []string{"is no int"}},
		"none without a key, of many": {run(obedient, obey, queue.Unkeyed), []string{"of kind obey without a key"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantFailure(t, record(t, c.do), c.words...)
		})
	}
}

func TestRunTask_aPausedQueue(t *testing.T) {
	t.Parallel()
	pool := asked(t, "do")
	db, err := idem.Open(t.Context(), pool, idem.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := queue.Pause(t.Context(), db, obey.Queue()); err != nil {
		t.Fatal(err)
	}
	wantFailure(t, record(t, func(t testing.TB) { idemtest.RunTask(t, pool, obedient, obey, "do") }), "the queue default is paused")
}

// killingTask is a task with a handler that is killed in these tests.
func killingTask(handle func(*queue.Worker, *pgxpool.Pool, string)) idemtest.Kill {
	return idemtest.Kill{
		Migrate: charges, Outside: bank,
		Worker: func(ctx context.Context, pool *pgxpool.Pool) (*queue.Worker, error) {
			db, err := idem.Open(ctx, pool, idem.Config{})
			if err != nil {
				return nil, err
			}
			w := queue.NewWorker(db, queue.Config{})
			handle(w, pool, idemtest.OutsideURL(ctx))
			return w, nil
		},
		Enqueue: func(ctx context.Context, pool *pgxpool.Pool) error {
			_, err := obey.Enqueue(ctx, pool, "do", "do")
			return err
		},
		Check: one,
	}
}

// paysBy is a handler on a lease that pays, and then writes an order.
func paysBy(e idem.Effect, method string, sendKey bool) func(*queue.Worker, *pgxpool.Pool, string) {
	e.Scope, e.Key = "shop", "charge:order:1"
	return func(w *queue.Worker, _ *pgxpool.Pool, bank string) {
		queue.Define[string]("obey", queue.Options{MaxAttempts: 5}).HandleLeased(w, func(ctx context.Context, _ string) error {
			_, err := idem.Call(ctx, e, func(ctx context.Context, key string) (string, error) {
				if !sendKey {
					key = ""
				}
				return ask(ctx, method, bank, key)
			})
			if err == nil {
				_, err = idem.Tx(ctx).Exec(ctx, "insert into orders (amount) values (1)")
			}
			return err
		})
	}
}

func oneOfEach(ctx context.Context, pool *pgxpool.Pool) error {
	return errors.Join(one(ctx, pool), charged(ctx, pool, 1, 1))
}

func atThe(words ...string) func(string) bool {
	return func(point string) bool {
		for _, word := range words {
			if strings.Contains(point, word) {
				return true
			}
		}
		return false
	}
}

func TestKillEverywhere_catchesATaskThatWritesOutsideOfItsTransaction(t *testing.T) {
	t.Parallel()
	k := killingTask(func(w *queue.Worker, pool *pgxpool.Pool, _ string) {
		obey.Handle(w, func(ctx context.Context, tx pgx.Tx, _ string) error {
			if _, err := pool.Exec(ctx, "insert into orders (amount) values (1)"); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, "insert into charges values ('x')")
			return err
		})
	})
	wantFailure(t, record(t, func(t testing.TB) { idemtest.KillAt(t, k, atThe("insert into charges")) }),
		"idemtest: point ", "the check: 2 orders, want 1")
}

func TestKillEverywhere_catchesATaskThatChargesWithoutACall(t *testing.T) {
	t.Parallel()
	k := killingTask(func(w *queue.Worker, _ *pgxpool.Pool, bank string) {
		obey.HandleLeased(w, func(ctx context.Context, _ string) error {
			if _, err := ask(ctx, "POST", bank, ""); err != nil {
				return err
			}
			_, err := idem.Tx(ctx).Exec(ctx, "insert into orders (amount) values (1)")
			return err
		})
	})
	k.Check = oneOfEach
	wantFailure(t, record(t, func(t testing.TB) { idemtest.KillAt(t, k, atCalls) }),
		"call POST /charges being carried out and its reply lost", "the check: 2 charges, want 1 to 1")
}

func TestKillEverywhere_aTaskWhoseCallMayEndUnknown(t *testing.T) {
	t.Parallel()
	k := killingTask(paysBy(idem.Effect{}, "POST", false))
	k.Check = oneOfEach
	wantFailure(t, record(t, func(t testing.TB) { idemtest.KillAt(t, k, atThe("its reply lost")) }),
		"nobody knows whether an effect of the task has happened", "Kill.Unknown")
	k.Unknown = func(ctx context.Context, pool *pgxpool.Pool) error { return charged(ctx, pool, 0, 1) }
	idemtest.KillAt(t, k, atCalls)
}

func TestKillEverywhere_aTaskThatIsNotDone(t *testing.T) {
	t.Parallel()
	k := killingTask(func(w *queue.Worker, _ *pgxpool.Pool, _ string) {
		obey.Handle(w, func(context.Context, pgx.Tx, string) error { return errors.New("not today") })
	})
	wantFailure(t, record(t, func(t testing.TB) { idemtest.KillEverywhere(t, k) }),
		"where nothing is killed", "is pending after 1 attempts: not today, and must be done")
}

// A worker that dies uses up an attempt.
func TestKillEverywhere_aTaskWithOneAttempt(t *testing.T) {
	t.Parallel()
	k := killingTask(func(w *queue.Worker, _ *pgxpool.Pool, _ string) {
		obey.Handle(w, func(ctx context.Context, tx pgx.Tx, _ string) error {
			_, err := tx.Exec(ctx, "insert into orders (amount) values (1)")
			return err
		})
	})
	k.Enqueue = func(ctx context.Context, pool *pgxpool.Pool) error {
		once := 1
		_, err := obey.EnqueueMany(ctx, pool, queue.Task[string]{Key: "do", Payload: "do", MaxAttempts: &once})
		return err
	}
	wantFailure(t, record(t, func(t testing.TB) { idemtest.KillAt(t, k, atThe(`client Execute "commit" being lost`)) }),
		"the task is failed after 1 attempts, where nothing breaks it is done")
}

func TestKillEverywhere_saysWhatIsNoTask(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*idemtest.Kill)
		words  []string
	}{
		"both":       {func(k *idemtest.Kill) { k.Request = order }, []string{"give one pair"}},
		"no worker":  {func(k *idemtest.Kill) { k.Worker = nil }, []string{"Kill.Worker is required"}},
		"no task":    {func(k *idemtest.Kill) { k.Enqueue = nil }, []string{"Kill.Enqueue is required"}},
		"none asked": {func(k *idemtest.Kill) { k.Enqueue = func(context.Context, *pgxpool.Pool) error { return nil } }, []string{"has enqueued 0 tasks, want 1"}},
		"not due": {func(k *idemtest.Kill) {
			k.Enqueue = func(ctx context.Context, pool *pgxpool.Pool) error {
				_, err := obey.EnqueueMany(ctx, pool, queue.Task[string]{Key: "do", Payload: "do", Delay: time.Hour})
				return err
			}
		}, []string{"not due at once"}},
	} {
		t.Run(name, func(t *testing.T) {
			k := killingTask(paysBy(idem.Effect{}, "POST", false))
			c.change(&k)
			wantFailure(t, record(t, func(t testing.TB) { idemtest.KillEverywhere(t, k) }), c.words...)
		})
	}
}

func TestKillProcess_aTaskInTheTransactionSurvives(t *testing.T) {
	idemtest.KillProcessAt(t, killingTask(func(w *queue.Worker, _ *pgxpool.Pool, _ string) {
		obey.Handle(w, func(ctx context.Context, tx pgx.Tx, _ string) error {
			_, err := tx.Exec(ctx, "insert into orders (amount) values (1)")
			return err
		})
	}), everyThird())
}

func TestKillProcess_aTaskOnALeaseSurvives(t *testing.T) {
	k := killingTask(paysBy(idem.Effect{Provider: idem.Keyed(time.Hour)}, "POST", true))
	k.Check = oneOfEach
	idemtest.KillProcessAt(t, k, everyThird())
}
