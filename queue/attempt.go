package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/execution"
	"github.com/idem-go/idem/internal/sqlstate"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// maxReruns is how often a handler in the transaction is run again at once after a
	// serialization failure or a deadlock, at no cost of attempts.
	maxReruns = 3
	// rerunPause is the pause before that, at most.
	rerunPause = 20 * time.Millisecond
	// overrunLimit is how long a handler whose context has ended is waited for.
	overrunLimit = time.Second
	// afterCommitLimit bounds the functions given to idem.AfterCommit.
	afterCommitLimit = 10 * time.Second
)

// attempt is one execution of a task's handler: of its task, what the handler sees.
type attempt struct {
	w     *Worker
	task  *task
	ctx   context.Context // of the handler's time; what the handler gets carries the execution, too
	stop  context.CancelCauseFunc
	tx    *tx
	calls execution.Calls // of a handler on a lease, in all of its runs
	run   *execution.Run  // the one that is under way

	elapsed time.Duration // the handler's time

	mu          sync.Mutex
	afterCommit []func(context.Context)
}

var _ execution.Execution = (*attempt)(nil)

func newAttempt(base context.Context, w *Worker, t *task) *attempt {
	a := &attempt{w: w, task: t}
	a.ctx, a.stop = context.WithCancelCause(base)
	return a
}

// Tx is the transaction of the handler.
func (a *attempt) Tx() pgx.Tx { return a.tx }

// Pool is the worker's.
func (a *attempt) Pool() *pgxpool.Pool { return a.w.db.Pool() }

// Cause is the task.
func (a *attempt) Cause() (door, scope, key string) {
	return "task", a.task.take.queue, strconv.FormatInt(a.task.id, 10)
}

// KeepWrites does nothing: an answer is what a request has.
func (a *attempt) KeepWrites() {}

// Reference does nothing: an answer is what a request has.
func (a *attempt) Reference(string) {}

// AfterCommit adds a function to be called once the commit is known.
func (a *attempt) AfterCommit(fn func(context.Context)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.afterCommit = append(a.afterCommit, fn)
}

// work runs the handler and ends the attempt.
func (a *attempt) work(base context.Context) {
	defer a.stop(context.Canceled)
	ctx, cancel := context.WithTimeoutCause(a.ctx, a.task.handler.options.Timeout, ErrTimeout)
	defer cancel()
	a.ctx = ctx
	a.w.beat.attach(a)
	for run := 0; ; run++ {
		err := a.once()
		again := a.finish(base, err)
		switch {
		case !again:
			return
		case run == maxReruns:
			a.conclude(base, fmt.Errorf("at each of %d runs: %w", run+1, err))
			return
		}
		a.w.db.Observe(a.ctx, a.event(idem.EventRerun, "", err))
		pause(a.ctx, rand.N(rerunPause)) // whoever it was in the way of goes on meanwhile
	}
}

// once runs the handler once. It returns when the handler has, or, some time after its
// context has ended, without it.
func (a *attempt) once() error {
	a.tx, a.run = newTx(a), a.calls.NewRun()
	if cause := context.Cause(a.ctx); cause != nil {
		return cause
	}
	a.mu.Lock()
	a.afterCommit = nil
	a.mu.Unlock()
	returned := make(chan error, 1)
	a.w.running.Add(1)
	go a.handle(execution.With(a.ctx, a.execution()), returned)
	select {
	case err := <-returned:
		return err
	case <-a.ctx.Done():
	}
	overrun := time.NewTimer(overrunLimit)
	defer overrun.Stop()
	select {
	case err := <-returned:
		return err
	case <-overrun.C:
		a.tx.abandon()
		return errStray
	}
}

// execution is what the handler's context carries.
func (a *attempt) execution() execution.Execution {
	if a.task.handler.leased {
		return &leased{a, &a.calls, a.run}
	}
	return a
}

var errStray = errors.New("the handler has not returned")

// handle calls the handler. A panic is an error with a stack.
func (a *attempt) handle(ctx context.Context, returned chan<- error) {
	err := errExited // unless it returns or panics
	defer func() {
		a.w.running.Add(-1)
		returned <- err
	}()
	defer func() {
		if p := recover(); p != nil {
			err = &panicked{p, debug.Stack()}
			a.w.db.Observe(ctx, a.event(idem.EventPanic, "", err))
		}
	}()
	err = a.task.handler.run(ctx, a)
}

var errExited = errors.New("the handler has left by runtime.Goexit")

type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v\n%s", p.value, p.stack) }

// finish ends a run of the handler, and reports whether to run it again.
func (a *attempt) finish(ctx context.Context, err error) (again bool) {
	late := context.Cause(a.ctx)
	deadline, _ := a.ctx.Deadline()
	a.elapsed = a.task.handler.options.Timeout - time.Until(deadline)
	a.run.End()
	undecided := a.calls.Why() // whatever the handler makes of it
	switch {
	case undecided == nil, errors.Is(err, undecided):
	case err == nil:
		err = undecided
	default:
		err = errors.Join(err, undecided)
	}
	if err == nil && late == nil {
		var ended bool
		if ended, err = a.succeed(ctx); ended {
			return false
		}
	} else {
		a.tx.rollback(ctx)
		if err == nil {
			err = late
		} else if late != nil && !errors.Is(err, late) {
			err = fmt.Errorf("%w: %w", late, err)
		}
	}
	if late == nil && undecided == nil && (sqlstate.Rerunnable(err) || sqlstate.Rerunnable(a.tx.failed())) {
		return true
	}
	a.conclude(ctx, err)
	return false
}

// succeed finishes the task with what the handler has written in its transaction, or soon,
// together with others, if that is nothing.
func (a *attempt) succeed(ctx context.Context) (ended bool, err error) {
	written, err := a.tx.commit(ctx)
	switch {
	case err != nil:
		return false, err
	case written:
		a.close(idem.TaskDone, nil)
	default:
		a.w.ends.add(a)
	}
	return true, nil
}

// close is the end of the attempt.
func (a *attempt) close(result idem.TaskResult, why error) {
	a.w.beat.release(a.task)
	a.w.ends.close(a.task)
	ctx := context.WithoutCancel(a.ctx)
	if result == idem.TaskDone {
		a.runAfterCommit(ctx)
	}
	a.w.db.Observe(ctx, a.event(idem.EventTask, result, why))
}

func (a *attempt) event(kind idem.EventKind, result idem.TaskResult, err error) idem.Event {
	t := a.task
	e := idem.Event{Kind: kind, Queue: t.take.queue, TaskKind: t.kind, TaskID: t.id, TaskResult: result, Attempt: int(t.attempts) + 1,
		Delay: time.Duration(t.delay * float64(time.Second)), Err: err}
	if result != "" {
		e.Elapsed = a.elapsed
	}
	if t.key != nil {
		e.Key = *t.key
	}
	return e
}

// hasAfterCommit reports whether there is something to be done after the commit.
func (a *attempt) hasAfterCommit() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.afterCommit) > 0
}

func (a *attempt) runAfterCommit(ctx context.Context) {
	a.mu.Lock()
	all := a.afterCommit
	a.afterCommit = nil
	a.mu.Unlock()
	if len(all) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, afterCommitLimit)
	defer cancel()
	for _, fn := range all {
		a.after(ctx, fn)
	}
}

func (a *attempt) after(ctx context.Context, fn func(context.Context)) {
	defer func() {
		if p := recover(); p != nil {
			a.w.db.Observe(ctx, a.event(idem.EventPanic, "", &panicked{p, debug.Stack()}))
		}
	}()
	fn(ctx)
}
