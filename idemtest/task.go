package idemtest

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/idem-go/idem/internal/pgsql"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// NewWorker returns the program's worker: it opens Idem on pool and gives the worker its
// handlers. It does not run it. ctx ends when the worker has.
type NewWorker func(ctx context.Context, pool *pgxpool.Pool) (*queue.Worker, error)

// Kind is a *queue.Kind, whatever its payload is.
type Kind interface {
	Name() string
	Queue() string
}

// Attempt is one attempt at a task, and how it has ended.
type Attempt struct {
	ID  int64
	Key string // empty if the task has none
	// Status is where the task stands then: done, failed or cancelled; or pending, if it
	// waits for the next attempt (Err is set) or was put off (it is not).
	Status queue.Status
	// Attempts are those that have been counted: one that was put off is none.
	Attempts int
	Err      error         // what the task remembers of it, as text; nil if it is done, or was put off
	Wait     time.Duration // until it is due again, by the database's clock
}

// String is the attempt in one line.
func (a Attempt) String() string {
	text := fmt.Sprintf("task %d is %s after %d attempts", a.ID, a.Status, a.Attempts)
	if a.Err != nil {
		text += ": " + a.Err.Error()
	}
	return text
}

// RunTask has a worker of the program's make one attempt at a task that is enqueued, and
// says how it has ended. It is the task of that key; or, if key is empty, whichever of the
// kind is taken next; or one without a key, by queue.Unkeyed. It must be due: see MakeDue.
//
// The worker takes this task once and no other, so that what the handler has enqueued is
// still there to be looked at, or run. It works on a pool of its own, is told to end when
// the attempt has, and has ended when RunTask returns. It fails t if the task cannot be
// taken, or has not ended within a minute.
func RunTask(t testing.TB, pool *pgxpool.Pool, newWorker NewWorker, kind Kind, key string) Attempt {
	t.Helper()
	a, err := runTask(t.Context(), pool, newWorker, kind, key)
	if err != nil {
		t.Fatalf("idemtest: RunTask: %v", err)
	}
	return a
}

// Enqueued fails t unless a task of kind is enqueued, whatever has become of it since, and
// returns its payload. It is the task of that key; or, if key is empty, whichever of the
// kind is taken next; or one without a key, by queue.Unkeyed. db is a pool, or the
// transaction that has enqueued it.
func Enqueued[T any](t testing.TB, db queue.Conn, kind *queue.Kind[T], key string) T {
	t.Helper()
	found, err := findTask(t.Context(), db, kind, key)
	if err != nil {
		t.Fatalf("idemtest: Enqueued: %v", err)
	}
	var payload T
	if raw, is := any(&payload).(*[]byte); is {
		*raw = found.payload
	} else if err := json.Unmarshal(found.payload, &payload); err != nil {
		t.Fatalf("idemtest: Enqueued: the payload of task %d is no %T: %v", found.id, payload, err)
	}
	return payload
}

// NotEnqueued fails t if a task of kind is enqueued, whatever has become of it since. key
// and db are as for Enqueued.
func NotEnqueued(t testing.TB, db queue.Conn, kind Kind, key string) {
	t.Helper()
	switch found, err := findTask(t.Context(), db, kind, key); {
	case err == nil:
		t.Errorf("idemtest: NotEnqueued: there is task %d of kind %s, key %q (%s)", found.id, found.kind, found.key, found.status)
	case !errors.Is(err, errNoTask):
		t.Errorf("idemtest: NotEnqueued: %v", err)
	}
}

// MakeDue makes a task due now that was delayed or put off, or waits for its next attempt,
// and tells the workers. It fails t unless the task waits to be taken. key is as for
// RunTask.
func MakeDue(t testing.TB, pool *pgxpool.Pool, kind Kind, key string) {
	t.Helper()
	found, err := findTask(t.Context(), pool, kind, key)
	if err == nil {
		err = makeDue(t.Context(), pool, found)
	}
	if err != nil {
		t.Fatalf("idemtest: MakeDue: %v", err)
	}
}

//go:embed sql/task_next.sql
var nextTask string

//go:embed sql/task_read.sql
var readTask string

//go:embed sql/task_due.sql
var dueTask string

//go:embed sql/tasks_all.sql
var allTasks string

//go:embed sql/tasks_held.sql
var heldTasks string

// task is a task as a test sees it.
type task struct {
	id                     int64
	queue, kind, key       string
	payload                []byte
	status                 queue.Status
	attempts, takes        int
	lastError              string
	wait                   float64 // seconds until it is due
	paused, unknown, found bool
}

// over reports whether an attempt has ended that was begun when the task was like before.
func (now task) over(before task) bool {
	return !now.found || now.takes > before.takes && now.status != queue.StatusRunning
}

func (now task) finished() bool {
	return now.status != queue.StatusPending && now.status != queue.StatusRunning
}

// attempt is how the one has ended that was begun when the task was like before.
func (now task) attempt(before task) Attempt {
	if !now.found { // it was done, and nothing is kept of what is
		return Attempt{ID: before.id, Key: before.key, Status: queue.StatusDone, Attempts: before.attempts + 1}
	}
	a := Attempt{ID: now.id, Key: now.key, Status: now.status, Attempts: now.attempts, Wait: time.Duration(now.wait * float64(time.Second))}
	if now.status != queue.StatusDone && now.attempts > before.attempts {
		a.Err = errors.New(now.lastError)
	}
	return a
}

var errNoTask = errors.New("there is no such task")

// findTask finds the task that a test means.
func findTask(ctx context.Context, db queue.Conn, kind Kind, key string) (task, error) {
	var named *string
	if key != queue.Unkeyed {
		named = &key
	}
	id, found, err := one[int64](ctx, db, nextTask, kind.Queue(), kind.Name(), named, key == "")
	if err != nil || found {
		if err != nil {
			return task{}, err
		}
		return taskByID(ctx, db, id)
	}
	held, _, err := one[string](ctx, db, heldTasks, kind.Queue())
	which := fmt.Sprintf("of kind %s and key %q", kind.Name(), key)
	switch key {
	case "":
		which = "of kind " + kind.Name()
	case queue.Unkeyed:
		which = "of kind " + kind.Name() + " without a key"
	}
	return task{}, errors.Join(fmt.Errorf("%w: %s; the queue %s holds %s", errNoTask, which, kind.Queue(), held), err)
}

// taskByID reads a task; one that is gone is done.
func taskByID(ctx context.Context, db queue.Conn, id int64) (t task, err error) {
	rows, err := db.Query(ctx, pgsql.Statement(readTask), id)
	if err != nil {
		return t, err
	}
	t = task{id: id, status: queue.StatusDone}
	_, err = pgx.ForEachRow(rows, []any{&t.id, &t.queue, &t.kind, &t.key, &t.payload, &t.status, &t.attempts, &t.takes,
		&t.lastError, &t.wait, &t.paused, &t.unknown}, func() error {
		t.found = true
		return nil
	})
	return t, err
}

// one is the one column of at most one row.
func one[T any](ctx context.Context, db queue.Conn, sql string, args ...any) (v T, found bool, err error) {
	rows, err := db.Query(ctx, pgsql.Statement(sql), args...)
	if err != nil {
		return v, false, err
	}
	_, err = pgx.ForEachRow(rows, []any{&v}, func() error {
		found = true
		return nil
	})
	return v, found, err
}

func makeDue(ctx context.Context, pool *pgxpool.Pool, t task) error {
	tag, err := pool.Exec(ctx, pgsql.Statement(dueTask), t.id)
	if err == nil && tag.RowsAffected() == 0 {
		err = fmt.Errorf("task %d of kind %s does not wait to be taken: it is %s", t.id, t.kind, t.status)
	}
	return err
}

func runTask(ctx context.Context, pool *pgxpool.Pool, newWorker NewWorker, kind Kind, key string) (Attempt, error) {
	before, err := findTask(ctx, pool, kind, key)
	switch {
	case err != nil:
		return Attempt{}, err
	case before.status != queue.StatusPending:
		return Attempt{}, fmt.Errorf("task %d of kind %s cannot be taken: it is %s", before.id, before.kind, before.status)
	case before.wait > 0:
		return Attempt{}, fmt.Errorf("task %d of kind %s is due in %v; MakeDue makes it due", before.id, before.kind,
			time.Duration(before.wait*float64(time.Second)).Round(time.Millisecond))
	case before.paused:
		return Attempt{}, fmt.Errorf("the queue %s is paused", before.queue)
	}
	w, err := hire(ctx, pool.Config(), newWorker, &only{pool: pool, task: before, once: true})
	if err != nil {
		return Attempt{}, err
	}
	w.start()
	after, err := w.await(ctx)
	if err = errors.Join(err, w.end()); err != nil {
		return Attempt{}, err
	}
	return after.attempt(before), nil
}
