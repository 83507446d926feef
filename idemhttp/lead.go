package idemhttp

import (
	"context"
	"errors"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/claim"
)

// maxReruns is how often a handler is run again after a serialization failure or
// a deadlock: what still fails then meets more load than a retry can mend.
const maxReruns = 3

// lead claims the key and runs the handler if the key is fresh. Whatever
// happens, those who wait are told.
func (x *exchange) lead(f *flight) ending {
	e := failed(codeUnavailable, nil) // for a panic of the guard's own, of which nothing is known
	landed := false
	land := func() {
		if !landed {
			landed = true
			x.flights.land(f, e)
		}
	}
	defer land()
	f.by = x.by
	if x.route.Lease > 0 {
		e = x.account(x.leaseAndRun(f))
	} else {
		e = x.account(x.claimAndRun(f))
	}
	if !e.others {
		e.by = x.by
	}
	land()
	x.runAfterCommit(e.afterCommit)
	return e
}

// account counts an answer that was read from the database, and keeps what is
// counted until the exchange is over.
func (x *exchange) account(e ending) ending {
	if e.hold == nil && e.answer != nil {
		held, err := x.budget.hold(len(e.answer.Body))
		if err != nil {
			return failed(codeUnavailable, err)
		}
		e.hold = held
	}
	x.hold = e.hold
	return e
}

// claimAndRun claims until the key is fresh or has an outcome, waiting while
// another process works on it, and running the handler again where that may
// help.
func (x *exchange) claimAndRun(f *flight) ending {
	ctx := context.WithoutCancel(x.r.Context())
	patience, done := context.WithDeadline(ctx, x.arrived.Add(x.route.Wait))
	defer done()
	run := x.newRun(ctx)
	defer func() { run.stop() }() // which a first run sets
	intent := x.intent()
	intent.Started = f.start
	for {
		c, err := x.claim(ctx, intent)
		if err != nil {
			return refused(err)
		}
		outcome := c.Outcome
		if outcome == claim.Fresh {
			e, next := run.once(c)
			if next == ends {
				return e
			}
			intent.Lazy = false // it is known by now not to pay
			if next == runsAgain {
				continue
			}
			outcome = claim.InFlight
		}
		if outcome != claim.InFlight {
			return found(c.Found)
		}
		if e, again := x.waitElsewhere(patience, f); !again {
			return e
		}
	}
}

// claim asks for the key.
func (x *exchange) claim(ctx context.Context, in claim.Intent) (*claim.Claim, error) {
	ctx, end := x.trace(ctx, idem.StepClaim)
	c, err := claim.Begin(ctx, x.db.Pool(), in)
	if err != nil {
		end(x.claimed(0, err))
		return nil, err
	}
	end(x.claimed(c.Outcome, nil))
	return c, nil
}

// waitElsewhere waits, while there is time, until a key that another process works
// on is worth claiming again.
func (x *exchange) waitElsewhere(patience context.Context, f *flight) (e ending, again bool) {
	f.isAway()
	_, end := x.trace(x.r.Context(), idem.StepWait)
	began := time.Now()
	changed := x.elsewhere.Wait(patience, x.scope, x.key)
	x.waited += elapsedSince(began)
	if changed {
		end(idem.Event{})
	} else {
		end(idem.Event{Outcome: idem.OutcomeInFlight})
	}
	return ending{problem: codeInFlight, elsewhere: true}, changed
}

func (x *exchange) intent() claim.Intent {
	return claim.Intent{
		Scope:       x.scope,
		Key:         x.key,
		Fingerprint: x.prints.current,
		Same:        x.prints.same,
		Isolation:   x.route.TxOptions.IsoLevel,
		Limit:       x.route.Limit,
		TTL:         x.route.TTL,
		Tombstone:   x.route.Tombstone,
		Lease:       x.route.Lease,
		Lazy:        x.route.LazyClaim,
		By:          x.by,
	}
}

// refused is the end of a request whose key could not be claimed. Nothing has run.
func refused(err error) ending {
	if errors.Is(err, idem.ErrUnavailable) {
		return failed(codeUnavailable, err)
	}
	return failed(codeNotApplied, err)
}

// found is the end by what is remembered of the key.
func found(f claim.Found) ending {
	if f.Outcome == claim.Answered {
		return replayed(&f.Answer).of(f.By)
	}
	return failed(codeOf(f.Outcome), nil).of(f.By)
}

// codeOf is the problem that a key without an answer is told by.
func codeOf(o claim.Outcome) string {
	switch o {
	case claim.Withheld:
		return codeWithheld
	case claim.Entombed:
		return codeExpired
	case claim.Unknown:
		return codeUnknown
	case claim.Mismatch:
		return codeMismatch
	case claim.InFlight, claim.Abandoned: // met after the handler has run
		return codeInFlight
	default:
		panic("idemhttp: a claim found an outcome that is not known")
	}
}

// runUnguarded runs a request without a key, where the route allows that, in a
// transaction of its own.
func (x *exchange) runUnguarded() ending {
	x.outcome = idem.OutcomeUnavailable
	ctx := context.WithoutCancel(x.r.Context())
	run := x.newRun(ctx)
	defer func() { run.stop() }() // which a first run sets
	for {
		c, err := claim.BeginUnkeyed(ctx, x.db.Pool(), claim.Intent{Isolation: x.route.TxOptions.IsoLevel, Limit: x.route.Limit})
		if err != nil {
			return refused(err)
		}
		e, next := run.once(c)
		if next != ends {
			continue
		}
		x.hold = e.hold
		x.runAfterCommit(e.afterCommit)
		e.unguarded = true
		if e.own != nil {
			e.outcome = idem.OutcomeUnguarded
		}
		return e
	}
}
