package idemtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/idem-go/idem/internal/pgsql/tasks"
	sqltx "github.com/idem-go/idem/internal/pgsql/tx"
	"github.com/idem-go/idem/internal/testdb"
	"github.com/idem-go/idem/queue"
)

// rehearseTask has the task done once, nothing being killed, and returns what happens from
// its take to its end.
func (k Kill) rehearseTask(ctx context.Context) (done rehearsal, want outcome, err error) {
	want.unknown = &atomic.Int64{}
	l, err := k.lay(ctx)
	if err != nil {
		return done, want, err
	}
	defer func() { err = errors.Join(err, l.end()) }()
	w, err := l.employ(ctx, l.proxy.URL())
	if err != nil {
		return done, want, err
	}
	var after task
	steps, err := l.proxy.Enumerate(func() error {
		w.start()
		after, err = w.await(ctx)
		return errors.Join(err, w.end())
	})
	if l.outside != nil {
		done.calls = l.outside.run()
	}
	if err != nil {
		return done, want, err
	}
	if after.status != queue.StatusDone {
		return done, want, fmt.Errorf("%v, and must be done", after.attempt(w.only.task))
	}
	done.steps = ofTheTask(steps)
	return done, want, l.checked(ctx, "the check", k.Check)
}

// background are the statements that a worker runs whenever their time has come, whatever
// its tasks do, and what only prepares others: they are no points.
var background = []string{sqltx.ByIndex, tasks.TakeAlone, tasks.Renew, tasks.Rescue, tasks.EndTakes, tasks.Wake, tasks.Listen, tasks.ListenCancel}

// preparing are the messages that only prepare a statement, and their answers: where one is
// lost, nothing has happened, as where the statement itself is.
var preparing = []string{"Parse", "Describe", "Bind", "Close", "ParseComplete", "ParameterDescription", "RowDescription",
	"NoData", "BindComplete", "CloseComplete"}

// ofTheTask leaves out what else a worker does: its background; all takes but the first,
// which is the one that brings the task; what prepares; and what belongs to no statement,
// such as the start of a connection. Where a Sync is lost, the Execute before it is the
// last to arrive.
func ofTheTask(steps []step) []step {
	return slices.DeleteFunc(slices.Clone(steps), func(s step) bool {
		return s.SQL == "" || slices.Contains(background, s.SQL) || s.SQL == tasks.Take && s.Nth > 1 || slices.Contains(preparing, s.Type)
	})
}

// employ enqueues the task and makes a worker for it on the database of url. l ends it.
func (l *life) employ(ctx context.Context, url string) (*hired, error) {
	t, err := l.enqueue(ctx)
	if err != nil {
		return nil, err
	}
	w, err := hireAt(withOutside(ctx, l.address()), url, l.kill.Worker, &only{pool: l.direct, task: t, once: true})
	if err == nil && l.outside != nil {
		l.outside.begin(nil)
	}
	return w, err
}

// enqueue enqueues the task that is to be killed.
func (l *life) enqueue(ctx context.Context) (t task, err error) {
	if err := l.kill.Enqueue(ctx, l.direct); err != nil {
		return t, fmt.Errorf("Kill.Enqueue: %w", err)
	}
	var n int
	var id int64
	if err := l.direct.QueryRow(ctx, allTasks).Scan(&n, &id); err != nil {
		return t, err
	}
	if n != 1 {
		return t, fmt.Errorf("Kill.Enqueue has enqueued %d tasks, want 1", n)
	}
	if t, err = taskByID(ctx, l.direct, id); err == nil && t.wait > 0 {
		err = errors.New("the task that Kill.Enqueue has enqueued is not due at once")
	}
	return t, err
}

// cutTaskAt is one point of KillEverywhere.
func (k Kill) cutTaskAt(ctx context.Context, want outcome, p point) (err error) {
	l, err := k.lay(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.end()) }()
	w, err := l.employ(ctx, l.proxy.URL())
	if err != nil {
		return err
	}
	trap := p.cut(l)
	w.start()
	over, unwatch := l.watch(ctx, w.only.task)
	came := visited(trap, over)
	err = errors.Join(w.end(), unwatch())
	switch {
	case err != nil:
		return err
	case !came:
		return errNotVisited
	}
	return l.succeed(ctx, w.only.task, want)
}

// watch closes over when an attempt at the task has ended, and ends with unwatch.
func (l *life) watch(ctx context.Context, before task) (over <-chan struct{}, unwatch func() error) {
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	closed, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(closed)
		tick := time.NewTicker(watchPause)
		defer tick.Stop()
		for {
			now, err := taskByID(ctx, l.direct, before.id)
			if err != nil || now.over(before) {
				failed <- err
				return
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				failed <- ctx.Err()
				return
			}
		}
	}()
	return closed, func() error {
		cancel()
		err := <-failed
		if errors.Is(err, context.Canceled) {
			return nil // the point came first
		}
		return err
	}
}

// succeed has a second worker finish the task, when nothing is left of the first but what
// the database remembers, and looks at what has come of it.
func (l *life) succeed(ctx context.Context, t task, want outcome) error {
	if err := l.bequeath(ctx, t.queue); err != nil {
		return err
	}
	w, err := hireAt(withOutside(ctx, l.address()), l.database.URL(), l.kill.Worker, &only{pool: l.direct, task: t})
	if err != nil {
		return err
	}
	w.start()
	err = l.finish(ctx, t)
	if err = errors.Join(err, w.end()); err == nil {
		return l.checked(ctx, "the check", l.kill.Check)
	}
	switch unknown := errors.Is(err, errTaskUnknown); {
	case unknown && l.kill.Unknown != nil:
		want.unknown.Add(1)
		return l.checked(ctx, "Kill.Unknown", l.kill.Unknown)
	case unknown:
		return fmt.Errorf("%w; if that may be, since the other side honours no keys, say so with Kill.Unknown", err)
	}
	return err
}

// bequeath ends the leases of the dead, and gives their tasks back, as every worker does
// within a second. What the dead had sent has been carried out by then: a take that comes
// later would use up the task's next attempt, as it may in earnest.
func (l *life) bequeath(ctx context.Context, queue string) error {
	if err := l.deserted(ctx); err != nil {
		return err
	}
	if err := l.lapse(ctx); err != nil {
		return err
	}
	if _, err := l.direct.Exec(ctx, tasks.Rescue, queue, 100, "the worker died while it was running", uuid.Nil); err != nil {
		return fmt.Errorf("giving back the tasks of the dead: %w", err)
	}
	return nil
}

var errTaskUnknown = errors.New("nobody knows whether an effect of the task has happened")

// finish waits until the task is done. It does not wait for what only time brings: each
// next attempt is due at once.
func (l *life) finish(ctx context.Context, t task) error {
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	tick := time.NewTicker(watchPause)
	defer tick.Stop()
	before, unknown := t, 0
	for {
		now, err := taskByID(ctx, l.direct, t.id)
		if err != nil {
			return err
		}
		if now.attempts > before.attempts {
			if unknown++; !now.unknown {
				unknown = 0
			}
		}
		before = now
		switch {
		case now.status == queue.StatusDone:
			return nil
		case now.unknown && (unknown >= unknownSends || now.finished()):
			return fmt.Errorf("%w: %s", errTaskUnknown, now.lastError)
		case now.finished():
			return fmt.Errorf("the task is %s after %d attempts, where nothing breaks it is done: %s", now.status, now.attempts, now.lastError)
		case now.status == queue.StatusPending && now.wait > 0:
			_ = makeDue(ctx, l.direct, now) // it may have been taken just now
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the task is stuck: after %v it is %s, with %d attempts: %s", settleLimit, now.status, now.attempts, now.lastError)
		}
	}
}

// killTaskAt is one point of KillProcess.
func (k Kill) killTaskAt(ctx context.Context, test string, want outcome, p point) (err error) {
	l, err := k.lay(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.end()) }()
	t, err := l.enqueue(ctx)
	if err != nil {
		return err
	}
	c, err := startChild(ctx, test, l.proxy.URL(), l.address())
	if err != nil {
		return err
	}
	l.finally(c.kill)
	trap := p.hold(l)
	if _, err := io.WriteString(c.stdin, "\n"); err != nil {
		return fmt.Errorf("the child process cannot be told to begin: %w", err)
	}
	over, unwatch := l.watch(ctx, t)
	came := visited(trap, over)
	err = errors.Join(c.kill(), unwatch())
	switch {
	case err != nil:
		return err
	case !came:
		return errNotVisited
	}
	trap.bury()
	return l.succeed(ctx, t, want)
}

// workAsChild makes the worker, and has it work from the first word of the parent until
// that is gone. It returns what went wrong.
func (k Kill) workAsChild(ctx context.Context, url string) error {
	pool, err := testdb.Connect(ctx, url)
	if err != nil {
		return err
	}
	worker, err := k.Worker(ctx, pool)
	if err != nil {
		return fmt.Errorf("the worker: %w", err)
	}
	fmt.Println("\n" + listens + "its parent")
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
		return errors.New("the parent has gone")
	}
	failed := make(chan error, 1)
	go func() { failed <- worker.Run(ctx) }()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // it ends when the parent does
		failed <- errors.New("the parent has gone")
	}()
	return <-failed
}
