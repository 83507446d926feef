package admin_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/admin"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
)

// working runs a worker until the test ends.
func working(t *testing.T, w *queue.Worker) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// status waits until the task has a status, and returns what is known of it.
func status(t *testing.T, db *idem.DB, id int64, want queue.Status) admin.TaskStory {
	t.Helper()
	var s admin.TaskStory
	until(t, "the task is "+string(want), func() bool {
		var err error
		if s, err = admin.ShowTask(t.Context(), db, id); err != nil {
			t.Fatal(err)
		}
		return s.Task.Status == want
	})
	return s
}

func enqueued(t *testing.T, kind *queue.Kind[string], db *idem.DB, key string) int64 {
	t.Helper()
	told, err := kind.Enqueue(t.Context(), db.Pool(), key, key)
	if err != nil || told.Outcome != queue.New {
		t.Fatalf("%s: got %+v and error %v, want a new task", key, told, err)
	}
	return told.ID
}

// A task that is cancelled while it waits never runs, with a worker beside it.
func TestT17_cancelWhilePending(t *testing.T) {
	db := open(t)
	kind := queue.Define[string]("k", queue.Options{})
	w := queue.NewWorker(db, queue.Config{})
	ran := make(chan string, 10)
	kind.HandleLeased(w, func(_ context.Context, name string) error { ran <- name; return nil })
	later, err := kind.EnqueueMany(t.Context(), db.Pool(), queue.Task[string]{Key: "later", Payload: "later", Delay: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := admin.CancelTask(t.Context(), db, later[0].ID, carol); err != nil {
		t.Fatal(err)
	}
	exec(t, db, "update idem.tasks set run_at = now() where task_key = 'later'")
	working(t, w)
	status(t, db, enqueued(t, kind, db, "behind"), queue.StatusDone)
	if s := status(t, db, later[0].ID, queue.StatusCancelled); s.Task.Attempts != 0 || s.Outcome != admin.OutcomeNotApplied || !s.NewKey {
		t.Errorf("got %+v, want it not to have run, and nothing done", s)
	}
	if again, err := kind.Enqueue(t.Context(), db.Pool(), "later", "later"); err != nil || again.Outcome != queue.Duplicate || again.Status != queue.StatusCancelled {
		t.Errorf("enqueued again: got %+v and error %v, want a duplicate of the cancelled one", again, err)
	}
	close(ran)
	for name := range ran {
		if name == "later" {
			t.Error("the cancelled task has run")
		}
	}
}

// The handler of a running task that is cancelled is told at once, long before its lease is
// renewed, and no attempt follows.
func TestT17_cancelWhileRunning(t *testing.T) {
	db := open(t)
	kind := queue.Define[string]("k", queue.Options{Lease: time.Minute, Backoff: time.Millisecond})
	w := queue.NewWorker(db, queue.Config{})
	running, told := make(chan struct{}, 10), make(chan error, 10)
	kind.HandleLeased(w, func(ctx context.Context, _ string) error {
		running <- struct{}{}
		<-ctx.Done()
		told <- context.Cause(ctx)
		return context.Cause(ctx)
	})
	working(t, w)
	id := enqueued(t, kind, db, "long")
	<-running
	until(t, "its take is noted", func() bool {
		s, err := admin.ShowTask(t.Context(), db, id)
		return err == nil && s.Take != nil && s.Take.Started && s.Task.Live && s.Task.Status == queue.StatusRunning
	})
	var cause error
	until(t, "the handler is told", func() bool { // asked again, as the worker may not listen yet
		if _, asked, err := admin.CancelTask(t.Context(), db, id, carol); err != nil && !errors.Is(err, admin.ErrTaskFinished) || err == nil && !asked {
			t.Fatalf("got asked %v and error %v", asked, err)
		}
		select {
		case cause = <-told:
			return true
		case <-time.After(500 * time.Millisecond):
			return false
		}
	})
	if !errors.Is(cause, queue.ErrCancelled) {
		t.Errorf("the handler's context ended with %v, want %v", cause, queue.ErrCancelled)
	}
	s := status(t, db, id, queue.StatusCancelled)
	if s.Task.Attempts != 1 || s.Take != nil || len(s.Audit) == 0 || s.Audit[0].Action != "task_cancel" {
		t.Errorf("got %+v, want one attempt, and who asked", s)
	}
	if len(running) > 0 {
		t.Error("another attempt followed")
	}
}

// A dead letter runs again, with all its attempts; a task that is done does not.
func TestT17_retryOfADeadLetterAndOfADoneOne(t *testing.T) {
	db := open(t)
	kind := queue.Define[string]("k", queue.Options{MaxAttempts: 2, Backoff: time.Millisecond})
	w := queue.NewWorker(db, queue.Config{})
	paper, runs := make(chan struct{}), make(chan struct{}, 100)
	kind.Handle(w, func(ctx context.Context, tx pgx.Tx, _ string) error {
		runs <- struct{}{}
		select {
		case <-paper:
			return nil
		default:
			return errors.New("no paper")
		}
	})
	working(t, w)
	id := enqueued(t, kind, db, "letter")
	if s := status(t, db, id, queue.StatusFailed); len(s.Errors) != 2 || s.Outcome != admin.OutcomeNotApplied {
		t.Errorf("got %+v, want two failed attempts and nothing done", s)
	}
	if _, err := admin.RetryTask(t.Context(), db, id, carol); err != nil {
		t.Fatal(err)
	}
	until(t, "it fails again", func() bool { return len(runs) == 4 })
	status(t, db, id, queue.StatusFailed)
	close(paper)
	if _, err := admin.RetryTask(t.Context(), db, id, carol); err != nil {
		t.Fatal(err)
	}
	s := status(t, db, id, queue.StatusDone)
	if s.Task.Attempts != 1 || len(s.Errors) != 4 || s.Outcome != admin.OutcomeCommitted || s.NewKey {
		t.Errorf("got %+v, want it done by the first attempt, and the errors of four", s)
	}
	if _, err := admin.RetryTask(t.Context(), db, id, carol); !errors.Is(err, admin.ErrTaskDone) {
		t.Errorf("retry of a done one: got error %v, want %v", err, admin.ErrTaskDone)
	}
	if len(runs) != 5 {
		t.Errorf("the handler ran %d times, want 5", len(runs))
	}
}

// E10, for tasks: from the request's key, and from the task, in each state.
func TestE10_whyFollowsTasks(t *testing.T) {
	db := open(t)
	e := charge("refund:1", idem.Provider{})
	refund := queue.Define[string]("refund", queue.Options{MaxAttempts: 1})
	receipt := queue.Define[string]("receipt", queue.Options{})
	g := newGuarded(t, db, idemhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
		if _, err := refund.Enqueue(r.Context(), idem.Tx(r.Context()), "refund:1", "1"); err != nil {
			panic(err)
		}
		w.WriteHeader(http.StatusAccepted)
	})
	if code := g.post(t.Context(), "one", "x"); code != http.StatusAccepted {
		t.Fatalf("got status %d, want 202", code)
	}
	want := func(step string, outcome admin.Outcome, tasks int, effects ...admin.Status) admin.Story {
		t.Helper()
		s, err := admin.Why(t.Context(), db, "a", "one")
		if err != nil || s.Outcome != outcome || s.Retry != admin.RetryReplayed || s.NewKey || len(s.Tasks) != tasks || len(s.Effects) != len(effects) {
			t.Fatalf("%s: got %+v and error %v, want %s, %d tasks, %v, and no new key", step, s, err, outcome, tasks, effects)
		}
		for i, e := range s.Effects {
			if e.Status != effects[i] {
				t.Errorf("%s: got %+v, want %s", step, e, effects[i])
			}
		}
		return s
	}
	s := want("pending", admin.OutcomeCommitted, 1)
	id := s.Tasks[0].ID
	of := admin.Intent{Door: "request", Scope: "a", Key: "one"}
	if s.Tasks[0].Cause != of || s.Tasks[0].Status != queue.StatusPending {
		t.Errorf("got %+v, want it pending, caused by the request", s.Tasks[0])
	}

	b := &bank{next: hangsUp}
	w := queue.NewWorker(db, queue.Config{})
	refund.HandleLeased(w, func(ctx context.Context, _ string) error {
		if _, err := idem.Call(ctx, e, b.charge); err != nil {
			return err
		}
		_, err := receipt.Enqueue(ctx, idem.Tx(ctx), "receipt:1", "1")
		return err
	})
	working(t, w)
	status(t, db, id, queue.StatusFailed)
	s = want("unknown", admin.OutcomeUnknown, 1, admin.StatusUnknown)
	if owner := s.Effects[0].Owner; owner != s.Tasks[0].Intent() || s.Tasks[0].Unsettled != 1 {
		t.Errorf("the effect is called by %+v, want the task", owner)
	}
	task, err := admin.ShowTask(t.Context(), db, id)
	if err != nil || task.Root != of || task.Outcome != admin.OutcomeUnknown || task.NewKey || len(task.Effects) != 1 || len(task.Errors) != 1 {
		t.Errorf("got %+v and error %v, want the root %v and its unknown effect", task, err, of)
	}
	wantRelease(t, db, release("one"), admin.ErrCommitted)

	settle := settlement("refund:1", admin.StatusApplied)
	if _, err := admin.SettleEffect(t.Context(), db, settle); err != nil {
		t.Fatal(err)
	}
	want("settled", admin.OutcomeCommitted, 1, admin.StatusApplied)
	if _, err := admin.RetryTask(t.Context(), db, id, carol); err != nil {
		t.Fatal(err)
	}
	status(t, db, id, queue.StatusDone)
	s = want("done", admin.OutcomeCommitted, 2, admin.StatusApplied)
	if len(b.seen) != 1 || len(s.Audit) != 2 {
		t.Errorf("the bank was called %d times, and the audit has %d lines; want 1 and 2", len(b.seen), len(s.Audit))
	}
	if s.Tasks[1].Cause != s.Tasks[0].Intent() || s.Tasks[1].Status != queue.StatusPending {
		t.Errorf("got %+v, want the follow-up task of the first", s.Tasks[1])
	}
	if root, err := admin.TaskRoot(t.Context(), db, s.Tasks[1].ID); err != nil || root != of {
		t.Errorf("the root of the follow-up task is %v (%v), want %v", root, err, of)
	}
}

// A refusal whose handler has enqueued a task beside its transaction is not released, as
// long as the task will run, is done, or has done something.
func TestReleaseKey_notWithATask(t *testing.T) {
	db := open(t)
	kind := queue.Define[string]("k", queue.Options{})
	g := newGuarded(t, db, idemhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
		if _, err := kind.Enqueue(r.Context(), db.Pool(), r.Header.Get("Idempotency-Key"), "1"); err != nil {
			panic(err)
		}
		w.WriteHeader(http.StatusConflict)
	})
	for _, tt := range []struct {
		key, then string
		effect    bool
		outcome   admin.Outcome
		want      error
	}{
		{"waits", "", false, admin.OutcomeUnknown, admin.ErrTasks},
		{"done", "status = 'done', finished_at = now(), expires_at = now() + interval '1 d'", false, admin.OutcomeCommitted, admin.ErrTasks},
		{"unknown", "status = 'failed', finished_at = now(), expires_at = now() + interval '1 d', last_error = 'e'", true, admin.OutcomeUnknown, admin.ErrEffects},
		{"cancelled", "status = 'cancelled', finished_at = now(), expires_at = now() + interval '1 d'", false, admin.OutcomeNotApplied, nil},
	} {
		key := tt.key
		if code := g.post(t.Context(), key, "x"); code != http.StatusConflict {
			t.Fatalf("%s: got status %d, want 409", key, code)
		}
		if tt.then != "" {
			exec(t, db, "update idem.tasks set "+tt.then+" where task_key = $1", key)
		}
		if tt.effect {
			unknownEffect(t, db, key)
		}
		if s, err := admin.Why(t.Context(), db, "a", key); err != nil || s.Outcome != tt.outcome || s.NewKey != (tt.want == nil) || len(s.Tasks) != 1 {
			t.Errorf("%s: got %+v and error %v, want %s", key, s, err, tt.outcome)
		}
		wantRelease(t, db, release(key), tt.want)
	}
}

// What is told of a task whose worker is gone is what the next worker makes of it, though it
// handles no kind of the task's, and though the queue is paused.
func TestT17_rescuedIsWhatAWorkerDoes(t *testing.T) {
	db := open(t)
	exec(t, db, `with left_behind as (
		insert into idem.tasks (queue, kind, task_key, payload, status, attempts, takes, max_attempts, fence, lease_until, cancel_at)
		select 'default', 'k', name, '1', 'running', attempts, attempts + 1, 3, gen_random_uuid(), now() - interval '1 minute',
		       case when asked then now() - interval '2 minutes' end
		from (values ('to-wait', 0, false), ('last', 2, false), ('asked', 0, true), ('asked-in-the-last', 2, true),
		             ('last-not-started', 2, false)) as v (name, attempts, asked)
		returning id, fence, lease_until, task_key)
		insert into idem.takes (fence, worker, queue, taken_at, lease_until, started, tasks)
		select fence, gen_random_uuid(), 'default', lease_until - interval '30 seconds', lease_until,
		       case when task_key like '%not-started' then 0 else 1 end, array[id]
		from left_behind`)
	if _, err := admin.PauseQueue(t.Context(), db, "default", carol); err != nil {
		t.Fatal(err)
	}
	told := map[string]queue.Status{
		"to-wait": queue.StatusPending, "last": queue.StatusFailed, "asked": queue.StatusCancelled,
		"asked-in-the-last": queue.StatusCancelled, "last-not-started": queue.StatusPending,
	}
	left, err := admin.ListTasks(t.Context(), db, admin.TaskFilter{})
	if err != nil || len(left) != len(told) {
		t.Fatalf("got %d tasks and error %v", len(left), err)
	}
	for _, task := range left {
		s, err := admin.ShowTask(t.Context(), db, task.ID)
		if err != nil || s.Rescued() != told[task.Key] {
			t.Errorf("%s: got %q and error %v, want %q", task.Key, s.Rescued(), err, told[task.Key])
		}
	}
	w := queue.NewWorker(db, queue.Config{})
	queue.Define[string]("another", queue.Options{}).HandleLeased(w, func(context.Context, string) error { return nil })
	working(t, w)
	for _, task := range left {
		status(t, db, task.ID, told[task.Key])
	}
}
