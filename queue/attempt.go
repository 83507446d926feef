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

// attempt is one execution of a task's handler, in one run of it or several.
type attempt struct {
	w       *Worker
	task    *task
	ctx     context.Context // of the handler's time; what the handler gets carries the execution, too
	stop    context.CancelCauseFunc
	calls   execution.Calls // of a handler on a lease, in all of its runs
	current *run            // the one that is under way, or was the last

	elapsed time.Duration    // the handler's time
	unheard bool             // a try to finish the task had no reply, so that it may have been
	ended   func(idem.Event) // ends its span
}

// run is one run of an attempt's handler, as the handler sees it. A goroutine that it has
// left behind keeps this one and its transaction, and has no part in the next.
type run struct {
	*attempt
	tx      *tx
	effects *execution.Run // those that are called in it, on a lease

	mu          sync.Mutex
	afterCommit []func(context.Context)
}

var _ execution.Execution = (*run)(nil)

func newAttempt(base context.Context, w *Worker, t *task) *attempt {
	a := &attempt{w: w, task: t}
	a.ctx, a.stop = context.WithCancelCause(base)
	return a
}

func newRun(a *attempt) *run {
	return &run{attempt: a, tx: newTx(a), effects: a.calls.NewRun()}
}

// Tx is the transaction of the handler.
func (r *run) Tx() pgx.Tx { return r.tx }

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
func (r *run) AfterCommit(fn func(context.Context)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.afterCommit = append(r.afterCommit, fn)
}

// work runs the handler and ends the attempt.
func (a *attempt) work(base context.Context) {
	defer a.stop(context.Canceled)
	ctx, cancel := context.WithTimeoutCause(a.ctx, a.task.handler.options.Timeout, ErrTimeout)
	defer cancel()
	a.ctx = a.trace(ctx)
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
	r := newRun(a)
	a.current = r
	if cause := context.Cause(a.ctx); cause != nil {
		return cause
	}
	returned := make(chan error, 1)
	a.w.running.Add(1)
	ctx, end := a.w.db.Trace(a.ctx, idem.StepHandler, a.event("", "", nil))
	go r.handle(execution.With(ctx, r.execution()), returned)
	err := r.await(returned)
	end(handled(err))
	return err
}

// await waits for the handler to return, or, some time after its context has ended, no
// longer.
func (r *run) await(returned <-chan error) error {
	select {
	case err := <-returned:
		return err
	case <-r.ctx.Done():
	}
	overrun := time.NewTimer(overrunLimit)
	defer overrun.Stop()
	select {
	case err := <-returned:
		return err
	case <-overrun.C:
		r.tx.abandon()
		return errStray
	}
}

// execution is what the handler's context carries.
func (r *run) execution() execution.Execution {
	if r.task.handler.leased {
		return &leased{r, &r.calls}
	}
	return r
}

var errStray = errors.New("the handler has not returned")

// handle calls the handler. A panic is an error with a stack.
func (r *run) handle(ctx context.Context, returned chan<- error) {
	err := errExited // unless it returns or panics
	defer func() {
		r.w.running.Add(-1)
		returned <- err
	}()
	defer func() {
		if p := recover(); p != nil {
			err = &panicked{p, debug.Stack()}
			r.w.db.Observe(ctx, r.event(idem.EventPanic, "", err))
		}
	}()
	err = legible(r.task.handler.run(ctx, r))
}

var errExited = errors.New("the handler has left by runtime.Goexit")

// legible returns a handler's error, having asked it all that the attempt will: its text,
// and each error that it wraps what it is. A nil pointer of the program's own type, for
// one, is an error that panics then, which must happen here and not in the worker.
func legible(err error) error {
	if err != nil {
		_, _, _ = err.Error(), errors.Is(err, errExited), errors.As(err, new(*panicked))
	}
	return err
}

type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v\n%s", p.value, p.stack) }

func (*panicked) Unwrap() error { return idem.ErrPanicked }

// briefly is an error without the stack of a panic, which has an event of its own.
func briefly(err error) error {
	var p *panicked
	if errors.As(err, &p) {
		return fmt.Errorf("%w: %v", idem.ErrPanicked, p.value)
	}
	return err
}

// finish ends a run of the handler, and reports whether to run it again.
func (a *attempt) finish(ctx context.Context, err error) (again bool) {
	late := context.Cause(a.ctx)
	deadline, _ := a.ctx.Deadline()
	a.elapsed = a.task.handler.options.Timeout - time.Until(deadline)
	a.current.effects.End()
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
		a.current.tx.rollback(ctx)
		if err == nil {
			err = late
		} else if late != nil && !errors.Is(err, late) {
			err = fmt.Errorf("%w: %w", late, err)
		}
	}
	if late == nil && undecided == nil && !a.unheard && (sqlstate.Rerunnable(err) || sqlstate.Rerunnable(a.current.tx.failed())) {
		return true
	}
	a.conclude(ctx, err)
	return false
}

// succeed finishes the task with what the handler has written in its transaction, or soon,
// together with others, if that is nothing.
func (a *attempt) succeed(ctx context.Context) (ended bool, err error) {
	written, err := a.commit(ctx)
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
		a.current.runAfterCommit(ctx)
	}
	event := a.event(idem.EventTask, result, briefly(why))
	a.w.db.Observe(ctx, event)
	a.ended(event)
}

func (a *attempt) event(kind idem.EventKind, result idem.TaskResult, err error) idem.Event {
	t := a.task
	e := idem.Event{Kind: kind, Queue: t.take.queue, TaskKind: t.kind, TaskID: t.id, TaskResult: result, Attempt: int(t.attempts) + 1, Takes: int(t.takes),
		Delay: time.Duration(t.delay * float64(time.Second)), Origin: t.origin, Err: err}
	if result != "" {
		e.Elapsed = a.elapsed
	}
	if t.key != nil {
		e.Key = *t.key
	}
	return e
}

// hasAfterCommit reports whether there is something to be done after the commit.
func (r *run) hasAfterCommit() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.afterCommit) > 0
}

func (r *run) runAfterCommit(ctx context.Context) {
	r.mu.Lock()
	all := r.afterCommit
	r.afterCommit = nil
	r.mu.Unlock()
	if len(all) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, afterCommitLimit)
	defer cancel()
	for _, fn := range all {
		r.after(ctx, fn)
	}
}

// after calls one of them, in a goroutine of its own: runtime.Goexit ends the one that it
// is called in, and must not take the attempt's.
func (r *run) after(ctx context.Context, fn func(context.Context)) {
	returned := make(chan error, 1)
	go func() {
		err := errAfterExited // unless it returns or panics
		defer func() {
			if p := recover(); p != nil {
				err = &panicked{p, debug.Stack()}
			}
			returned <- err
		}()
		fn(ctx)
		err = nil
	}()
	if err := <-returned; err != nil {
		r.w.db.Observe(ctx, r.event(idem.EventPanic, "", err))
	}
}

var errAfterExited = errors.New("a function given to idem.AfterCommit has left by runtime.Goexit")
