package idemhttp

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/claim"
	"github.com/idem-go/idem/internal/execution"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// leaseAndRun is claimAndRun on a lease.
func (x *exchange) leaseAndRun(f *flight) ending {
	ctx := context.WithoutCancel(x.r.Context())
	patience, done := context.WithDeadline(ctx, x.arrived.Add(x.route.Wait))
	defer done()
	intent := x.intent()
	intent.Started = f.start
	for {
		l, err := x.lease(ctx, intent)
		if err != nil {
			return refused(err)
		}
		switch l.Outcome {
		case claim.Fresh:
			return x.runLeased(ctx, l)
		case claim.InFlight:
		default:
			return found(l.Found)
		}
		if e, again := x.waitElsewhere(patience, f); !again {
			return e
		}
	}
}

// lease asks for the key on a lease, which outlives the span of asking.
func (x *exchange) lease(ctx context.Context, in claim.Intent) (*claim.Lease, error) {
	_, end := x.trace(ctx, idem.StepClaim)
	l, err := x.leases.Begin(ctx, in)
	if err != nil {
		end(x.claimed(0, err))
		return nil, err
	}
	end(x.claimed(l.Outcome, nil))
	return l, nil
}

// runLeased runs the handler until its lease ends.
func (x *exchange) runLeased(ctx context.Context, l *claim.Lease) ending {
	defer l.Close(ctx)
	run := x.newRun(l.Context())
	defer func() { run.stop() }() // which a first run sets
	for {
		e, next := run.once(l)
		if next != runsAgain {
			return e
		}
		l.Again()
	}
}

// leasedState is one run of a handler on a lease.
type leasedState struct {
	*runState
	*claim.Lease
	calls *execution.Run
}

var _ execution.Leased = leasedState{}

func (s leasedState) Tx() pgx.Tx                                        { return s.Lease.Tx() }
func (s leasedState) Hold(ctx context.Context, tx pgx.Tx) (bool, error) { return s.Lease.Hold(ctx, tx) }
func (s leasedState) Pool() *pgxpool.Pool                               { return s.x.db.Pool() }
func (s leasedState) Instance(ctx context.Context) (uuid.UUID, error)   { return s.x.db.Instance(ctx) }

// Enter begins a call of an effect in this run.
func (s leasedState) Enter(scope, key string, going error) (before error, exit func(), refused error) {
	before, exit, begun := s.calls.Begin(scope, key, going)
	switch {
	case begun:
		return before, exit, nil
	case errors.Is(context.Cause(s.Context()), idem.ErrLeaseLost):
		return nil, nil, idem.ErrLeaseLost
	default:
		return nil, nil, errNotEntered
	}
}

var errNotEntered = fmt.Errorf("%w: it is called twice at once in this handler, or after that has returned or was given up", idem.ErrInFlight)

// noMoreCalls lets a handler that has returned, or was given up, begin no further call.
// Of one that is under way nothing is known (see Enter).
func noMoreCalls(x execution.Execution) {
	if s, leased := x.(leasedState); leased {
		s.calls.End()
	}
}

// answering is what a bound request's answer is done with: below 500 it is remembered
// whatever the route says, since the effect has happened.
func answering(p Policy, status int, bound bool) Policy {
	if bound && p == RollbackAndFree && status < 500 {
		return RollbackAndStore
	}
	return p
}

// Observe hands an event of the handler's on.
func (s *runState) Observe(e idem.Event) { s.x.observe(e) }
