package idemtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// defaultMaxPoints is more than twice what a handler with ten statements
	// has. A point takes some 50 to 200 ms.
	defaultMaxPoints = 500
	// defaultLimit is half of what go test gives to a package.
	defaultLimit = 5 * time.Minute
	// maxFailures is how many points may fail before the others are not tried.
	maxFailures = 5
)

// Kill is a handler that is to be killed, and how to tell that nothing came of
// it. Check is required, and so are Handler and Request for a request, or Worker and
// Enqueue for a task.
type Kill struct {
	// Migrate makes the program's tables, as for New; nil makes none.
	Migrate func(ctx context.Context, pool *pgxpool.Pool) error
	// Handler is the program that is tested: it opens Idem on pool, makes a
	// guard and returns the guarded handler. It is called for each point; ctx
	// ends when the point is done. All that it does with the database goes
	// through pool. Points are tried several at a time, so Handler, Request and
	// Check must be safe for concurrent use.
	Handler func(ctx context.Context, pool *pgxpool.Pool) (http.Handler, error)
	// Request makes the request, as for Repeat. Its answer must be one that is
	// remembered.
	Request func() *http.Request
	// Worker is the program that is tested, if it is a task that is to be killed, instead
	// of Handler: what is said there counts for it.
	Worker NewWorker
	// Enqueue enqueues the task, instead of Request: exactly one, due at once, of a kind
	// that Worker handles. It may make the rows that the task needs. Nothing of it is
	// killed. The task must come to be done.
	Enqueue func(ctx context.Context, pool *pgxpool.Pool) error
	// Check returns an error if the request, or the task, has not been carried out exactly
	// once: it counts the rows that it leaves, and what came to Outside. It is called
	// when the request has its answer, or the task is done.
	Check func(ctx context.Context, pool *pgxpool.Pool) error
	// Outside returns a stand-in for another system that the handler calls by HTTP,
	// such as a bank; nil is none. Handler and Worker find it at OutsideURL(ctx). It is
	// called for each point, lives in this process and is never killed: pool leads
	// to the point's database directly, where it can keep what it has done, so that
	// Check finds it. Each call is a point in three ways: it is lost, it is carried
	// out and the reply is lost, or the reply arrives and the connection ends.
	Outside func(ctx context.Context, pool *pgxpool.Pool) (http.Handler, error)
	// Unknown says that nobody may know, at some points, whether an effect of the
	// request has happened: where the other side of an idem.Call honours no keys. It
	// is Check for a request whose repeats are all answered outcome-unknown, and for a
	// task whose attempts all end so, and returns an error if more has happened than may have: two charges. Nil fails the
	// test at such a point.
	Unknown func(ctx context.Context, pool *pgxpool.Pool) error
	// Server is the URL of the server to make the databases on, as for NewAt. It
	// must be on this machine. Empty means this process's own.
	Server string
	// MaxPoints is how many points there may be; more fail the test before any
	// is tried. Zero means 500.
	MaxPoints int
	// Limit is how long all of it may take. Zero means 5 minutes.
	Limit time.Duration
}

// KillEverywhere cuts the handler's connection to the database at every message
// of one request: once so that the message is lost, once so that it arrives and
// nothing after it. What the server has begun is rolled back, or was committed and
// nobody knows. The calls of Kill.Outside are cut, too. Each time, on a database of its
// own, the request is then repeated until it is answered, and t fails unless
//
//   - the answer has the status that it has where nothing breaks,
//   - every later repeat gets the same answer, as a replay,
//   - Check and Idem's invariants hold (Unknown instead of Check, if it is given and the
//     repeats are answered outcome-unknown), and
//   - the point was there: a message that did not come has tested nothing.
//
// A handler with one statement has about 100 points, and each takes about a tenth
// of a second. It tells which points failed, and how; after five it gives up. A
// request that does not do the same each time fails, too.
//
// On a lease, what is dead is not waited for: between two sends the leases of those
// who have gone are ended, whatever their length, so that the next one takes over. A
// handler that goes on after it was answered for keeps its lease, and the request is
// repeated until it has ended. The renewal of leases is no point.
//
// A task (Kill.Worker) is enqueued anew for each point and taken by a worker whose
// connection is cut there. That worker is told to end, and does when its handler has
// returned; then the lease of what it has left is over, and a second worker makes as many
// attempts as it takes. t fails unless the task is done, Check and Idem's invariants hold,
// and the point was there. Points are the messages by which the take that brings the task,
// what the handler does and the end of the task are executed and answered; those that only
// prepare them are none. The workers take no other task, also none that this one enqueues.
func KillEverywhere(t testing.TB, k Kill) {
	t.Helper()
	k.everywhere(t, cutPoints, k.cutAt)
}

// everywhere tries every point of one request, one after the other.
func (k Kill) everywhere(t testing.TB, points func(rehearsal) []point, try func(context.Context, outcome, point) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(k.Limit, defaultLimit))
	defer cancel()
	if err := k.valid(); err != nil {
		t.Fatalf("idemtest: %v", err)
	}
	// The template lives for as long as this database does.
	template, err := clone(ctx, k.Server, k.Migrate)
	if err != nil {
		t.Fatalf("idemtest: no database: %v", err)
	}
	defer func() { report(t, template.Drop()) }()
	done, want, err := k.rehearse(ctx)
	if err != nil {
		t.Fatalf("idemtest: where nothing is killed: %v", err)
	}
	all := points(done)
	if most := cmp.Or(k.MaxPoints, defaultMaxPoints); len(all) > most {
		t.Fatalf("idemtest: the %s has %d points to be killed at, Kill.MaxPoints allows %d: make it smaller, or allow more", k.what(), len(all), most)
	}
	tried, failures := 0, 0
	for i, err := range backward(ctx, len(all), func(ctx context.Context, i int) error { return try(ctx, want, all[i]) }) {
		tried++
		if err != nil {
			failures++
			t.Errorf("idemtest: point %d of %d, %v: %v", i+1, len(all), all[i], err)
		}
		if failures == maxFailures {
			t.Fatalf("idemtest: %d points failed; %d of %d were tried", failures, tried, len(all))
		}
	}
	if tried < len(all) {
		t.Fatalf("idemtest: the time is over (%v; see Kill.Limit); %d of %d points were tried", ctx.Err(), tried, len(all))
	}
	t.Logf("idemtest: killed at %d points; each time %s, and the check held%s", len(all), k.came(), want.doubts())
}

// what is killed, and came what comes of it each time.
func (k Kill) what() string {
	if k.isTask() {
		return "task"
	}
	return "request"
}

func (k Kill) came() string {
	if k.isTask() {
		return "the task was done"
	}
	return "one answer"
}

func (k Kill) isTask() bool { return k.Worker != nil || k.Enqueue != nil }

func (k Kill) valid() error {
	var faults []error
	fault := func(is bool, text string) {
		if is {
			faults = append(faults, errors.New(text))
		}
	}
	request, task := k.Handler != nil || k.Request != nil, k.isTask()
	fault(request && task, "Kill.Handler and Kill.Request are for a request, Kill.Worker and Kill.Enqueue for a task: give one pair")
	fault(k.Handler == nil && !task, "Kill.Handler is required: it returns the guarded handler on the pool that it gets; or Kill.Worker, for a task")
	fault(k.Request == nil && !task, "Kill.Request is required: it makes the request, with an Idempotency-Key; or Kill.Enqueue, for a task")
	fault(k.Worker == nil && task, "Kill.Worker is required: it returns the worker on the pool that it gets")
	fault(k.Enqueue == nil && task, "Kill.Enqueue is required: it enqueues the task")
	fault(k.Check == nil, "Kill.Check is required: without it nothing tells that the "+k.what()+" was carried out once")
	fault(k.MaxPoints < 0 || k.Limit < 0, "Kill.MaxPoints and Kill.Limit cannot be negative")
	return errors.Join(faults...)
}

// outcome is what a request comes to where nothing breaks, and how often it, or the task,
// has come to be unknown where something did.
type outcome struct {
	status  int // of the answer; a task has none
	unknown *atomic.Int64
}

// doubts says at how many points the outcome is unknown.
func (o outcome) doubts() string {
	if n := o.unknown.Load(); n > 0 {
		return fmt.Sprintf("; at %d of them the outcome is unknown, and Kill.Unknown held", n)
	}
	return ""
}

// rehearse does the request once, nothing being killed, and returns what happens
// between its beginning and its answer.
func (k Kill) rehearse(ctx context.Context) (done rehearsal, want outcome, err error) {
	if k.isTask() {
		return k.rehearseTask(ctx)
	}
	l, err := k.begin(ctx)
	if err != nil {
		return done, want, err
	}
	var first Answer
	if l.outside != nil {
		l.outside.begin(nil)
	}
	steps, err := l.proxy.Enumerate(func() (err error) {
		first, err = l.client.send(ctx)
		return err
	})
	if l.outside != nil {
		done.calls = l.outside.run()
	}
	want = outcome{status: first.Status, unknown: &atomic.Int64{}}
	if err == nil {
		err = l.verify(ctx, []Answer{first}, want)
	}
	if err == nil && len(steps) == 0 {
		err = errors.New("the request sent nothing to the database: does Kill.Handler use the pool that it gets?")
	}
	if err = errors.Join(err, l.end()); err != nil {
		return done, want, fmt.Errorf("%w (the answer was %v)", err, first)
	}
	done.steps = withoutBeats(steps)
	return done, want, nil
}
