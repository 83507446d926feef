package idemhttp

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/claim"
	"github.com/idem-go/idem/internal/execution"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// run is the handler's time for one request: its limit spans all of its runs.
type run struct {
	x       *exchange
	ctx     context.Context // ends with the limit
	stop    context.CancelFunc
	started bool
	reruns  int
	base    context.Context
}

// runState is one run of the handler, as the handler sees it.
type runState struct {
	x  *exchange
	tx pgx.Tx

	mu          sync.Mutex
	keepWrites  bool
	reference   string
	afterCommit []func(context.Context)
}

var _ execution.Execution = (*runState)(nil)

func (s *runState) Tx() pgx.Tx { return s.tx }

func (s *runState) Pool() *pgxpool.Pool { return s.x.db.Pool() }

// Hold does nothing: the claim is held by the transaction itself.
func (s *runState) Hold(context.Context, pgx.Tx) (bool, error) { return true, nil }

func (s *runState) Cause() (door, scope, key string) { return "request", s.x.scope, s.x.key }

func (s *runState) KeepWrites() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keepWrites = true
}

func (s *runState) AfterCommit(fn func(context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.afterCommit = append(s.afterCommit, fn)
}

func (s *runState) Reference(ref string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reference = ref
}

// panicked is what a handler panicked with. exited means that it left by
// runtime.Goexit instead.
type panicked struct {
	value  any
	stack  []byte
	exited bool
}

func (p *panicked) err() error { return fmt.Errorf("%w: %v\n%s", idem.ErrPanicked, p.value, p.stack) }

var (
	errLimit  = fmt.Errorf("idemhttp: the handler exceeded Route.Limit: %w", context.DeadlineExceeded)
	errReruns = errors.New("idemhttp: the handler met a serialization failure or a deadlock at every run")
)

func (x *exchange) newRun(base context.Context) *run {
	return &run{x: x, base: base, stop: func() {}}
}

// next is what follows a run.
type next int

const (
	ends      next = iota + 1 // the request has ended
	runsAgain                 // the handler may be run again
	waits                     // the key turned out to be in flight elsewhere
)

// holder is who has the key while the handler runs, in the transaction or on a lease.
// Exactly one of its ends is called for each run.
type holder interface {
	Tx() pgx.Tx
	// Bound reports whether an effect of the request has started.
	Bound(ctx context.Context) bool
	Commit(ctx context.Context, a idem.Answer, withhold bool) claim.Result
	Refuse(ctx context.Context, a idem.Answer, withhold, keepWrites bool) claim.Result
	Free(ctx context.Context) claim.Result
	Abandon(ctx context.Context) claim.Result
}

// state is what the handler is given of c.
func (r *run) state(c holder) (*runState, execution.Execution) {
	state := &runState{x: r.x, tx: c.Tx()}
	if l, leased := c.(*claim.Lease); leased {
		return state, leasedState{state, l, l.NewRun()}
	}
	return state, state
}

// once runs the handler under c and ends the claim.
func (r *run) once(c holder) (ending, next) {
	if !r.started {
		r.ctx, r.stop = context.WithTimeout(r.base, r.x.route.Limit)
		r.started = true
	}
	state, execution := r.state(c)
	rec := newRecorder(r.x.w, r.x.route.MaxHeld, r.x.budget)
	ctx, handlerEnds := r.x.trace(r.ctx, idem.StepHandler)
	p, returned := r.handle(ctx, execution, rec)
	noMoreCalls(execution)
	if !returned {
		handlerEnds(idem.Event{Err: context.Cause(r.ctx)})
		rec.abandon()
		return r.overrun(c.Abandon(r.base)), ends
	}
	own, overflow := rec.close() // a goroutine that is left behind writes into nothing
	handlerEnds(handled(own, p))
	held := rec.body.hold()
	e, result := r.commit(c, p, own, overflow, state)
	if result.Ending != claim.Rerun && result.Ending != claim.Contended {
		e.hold = held
	} else {
		held.release()
	}
	switch {
	case result.Ending == claim.Contended:
		return e, waits
	case result.Ending != claim.Rerun || p != nil || r.ctx.Err() != nil:
		return e, ends
	case r.reruns == maxReruns:
		return failed(codeUnavailable, errors.Join(errReruns, result.Err)), ends
	}
	r.reruns++
	r.x.observe(idem.Event{Kind: idem.EventRerun, Err: result.Err})
	return ending{}, runsAgain
}

// commit ends the claim after a run of the handler that has returned.
func (r *run) commit(c holder, p *panicked, own *recording, overflow error, state *runState) (e ending, result claim.Result) {
	ctx, end := r.x.trace(r.base, idem.StepCommit)
	switch {
	case p != nil:
		e, result = r.panicked(ctx, c, p)
	case r.ctx.Err() != nil: // its time was over before it answered
		result = c.Free(ctx)
		e = r.overrun(result)
	default:
		e, result = r.x.finish(ctx, c, own, overflow, state)
	}
	if e.problem == codeNotApplied && c.Bound(ctx) {
		e = failed(codeUnavailable, e.err) // something was applied, and the key is not free
		e.detail = "A part of this request that cannot be undone has been carried out, and its answer could not be kept. Repeat the same request with the same key: it goes on where this one has stopped."
	}
	outcome := r.x.outcomeOf(e)
	if result.Ending == claim.Rerun {
		outcome = "" // it is none yet
	}
	end(idem.Event{Outcome: outcome, Err: result.Err})
	return e, result
}

// handle runs the handler in a goroutine of its own, so that one that never
// returns can be given up, and reports whether it returned within the limit.
func (r *run) handle(ctx context.Context, state execution.Execution, rec *recorder) (p *panicked, returned bool) {
	request := r.x.request(execution.With(ctx, state))
	done := make(chan *panicked, 1)
	go func() {
		p := &panicked{exited: true}
		defer func() {
			if v := recover(); v != nil {
				p = &panicked{value: v, stack: debug.Stack()}
			}
			done <- p
		}()
		r.x.next.ServeHTTP(rec, request)
		p = nil
	}()
	select {
	case p = <-done:
		return p, true
	case <-r.ctx.Done():
	}
	select { // one that ended at the same moment has ended
	case p = <-done:
		return p, true
	default:
		return nil, false
	}
}

// overrun is the end of a request whose handler has not answered in time, or before
// its lease was lost. What the claim has found out about the key counts before that.
func (r *run) overrun(result claim.Result) ending {
	if result.Ending == claim.Freed || result.Ending == claim.NotApplied {
		result.Ending = claim.Unavailable
	}
	e := ended(result, ending{})
	cause := errLimit
	if lost := context.Cause(r.ctx); errors.Is(lost, idem.ErrLeaseLost) {
		cause = lost
	}
	e.err = errors.Join(cause, result.Err)
	return e
}

// panicked rolls back and passes the panic on, unless the handler had committed
// by itself before: even then its own recoverer sees it. A handler that panics
// because the key is not its own (see Route.LazyClaim) is answered for.
func (r *run) panicked(ctx context.Context, c holder, p *panicked) (ending, claim.Result) {
	result := c.Free(ctx)
	switch result.Ending {
	case claim.Lost, claim.Contended:
		return ended(result, ending{}), result
	case claim.LeaseLost, claim.Doubtful, claim.CallInFlight:
		e := ended(result, ending{})
		e.panicked = p
		return e, result
	case claim.Bound:
		return ending{panicked: p, problem: codeUnknown, outcome: idem.OutcomeUnknown, err: result.Err}, result
	}
	return ending{panicked: p, outcome: idem.OutcomeReleased, err: result.Err}, result
}

// elapsedSince keeps the one use of the process's clock in one place: it only
// measures, nothing is decided by it.
func elapsedSince(t time.Time) time.Duration { return time.Since(t) }
