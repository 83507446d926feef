package claim

import (
	"context"
	"errors"
	"time"

	"github.com/idem-go/idem"
)

// Commit ends the lease with what the handler has written in the final transaction,
// if it has begun, and remembers a; if withhold, only that there was an answer.
func (l *Lease) Commit(ctx context.Context, a idem.Answer, withhold bool) Result {
	return l.end(ctx, func(ctx context.Context) Result {
		if l.final.begun() {
			return l.final.Commit(ctx, a, withhold)
		}
		return l.alone(ctx, kept, a, withhold)
	})
}

// Refuse ends the lease and remembers a; the final transaction's writes are rolled
// back, unless keepWrites.
func (l *Lease) Refuse(ctx context.Context, a idem.Answer, withhold, keepWrites bool) Result {
	return l.end(ctx, func(ctx context.Context) Result {
		if l.final.begun() {
			return l.final.Refuse(ctx, a, withhold, keepWrites)
		}
		return l.alone(ctx, writes(keepWrites), a, withhold)
	})
}

// Free rolls the final transaction back and lets go of the key.
func (l *Lease) Free(ctx context.Context) Result {
	return l.end(ctx, func(ctx context.Context) Result {
		if l.final.begun() {
			return l.final.Free(ctx)
		}
		if r, ended := l.unbegun(); ended {
			return r
		}
		return Result{Ending: Freed}
	})
}

// Abandon gives up a handler that has not returned in time, as Claim.Abandon does. A
// call that it makes may go on; what comes of it can still be recorded until another
// claim takes over.
func (l *Lease) Abandon(ctx context.Context) Result {
	ctx, cancel := detached(ctx)
	defer cancel()
	r := Result{Ending: Unavailable}
	if l.lost() {
		r = Result{Ending: LeaseLost, Err: idem.ErrLeaseLost}
	}
	l.final.session.close()
	if l.final.pooled.Load() != nil {
		if abandoned := l.final.Abandon(ctx); r.Ending != LeaseLost || abandoned.Ending == Bound {
			r = abandoned
		}
	}
	return l.after(ctx, r)
}

// end is the one way in which a run ends: by what the lease and its calls have come
// to, before anything that the handler has answered.
func (l *Lease) end(ctx context.Context, finish func(context.Context) Result) Result {
	ctx, cancel := detached(ctx)
	defer cancel()
	e, cause := l.judge()
	if e == 0 {
		return l.after(ctx, finish(ctx))
	}
	r := Result{Ending: e, Err: cause}
	if l.final.begun() {
		if undone := l.final.Free(ctx); undone.Ending == Bound {
			r = undone // the handler has committed by itself
		}
	}
	return l.after(ctx, r)
}

// judge is how the run ends, whatever the handler answers; zero if that counts. What
// nobody knows counts before what somebody else knows, and that before what may be
// tried again.
func (l *Lease) judge() (Ending, error) {
	if l.lost() {
		return LeaseLost, idem.ErrLeaseLost
	}
	switch why := l.Why(); {
	case why == nil:
		return 0, nil
	case errors.Is(why, idem.ErrOutcomeUnknown):
		return Doubtful, why
	case errors.Is(why, idem.ErrInFlight):
		return CallInFlight, why
	default:
		return Unavailable, why
	}
}

// alone ends a lease whose final transaction has not begun.
func (l *Lease) alone(ctx context.Context, w writes, a idem.Answer, withhold bool) Result {
	if r, ended := l.unbegun(); ended {
		return r
	}
	return l.complete(ctx, w, a, withhold)
}

// unbegun looks at what the handler has left of a final transaction that has not
// begun, and reports whether that ends the run.
func (l *Lease) unbegun() (Result, bool) {
	s := l.final.session
	select {
	case <-s.close():
	case <-time.After(strayLimit): // a goroutine left behind waits for a connection
		return Result{Ending: Unavailable, Err: errStray}, true
	}
	switch {
	case s.failure != nil: // it could not begin
		return Result{Ending: Unavailable, Err: s.failure}, true
	case s.refused:
		return Result{Ending: NotApplied, Err: errRolledBack}, true
	}
	return Result{}, false
}

// after lets go of the key, unless the end is remembered or the handler runs again.
func (l *Lease) after(ctx context.Context, r Result) Result {
	switch r.Ending {
	case Remembered, Bound:
		l.leases.remove(l)
		l.ended.Store(true)
		return r
	case Rerun:
		return r
	case Contended: // there is no other transaction to wait for
		r.Ending = Unavailable
	}
	had, err := l.letGo(ctx)
	r.Err = errors.Join(r.Err, err)
	if !had {
		r.Ending = LeaseLost
	}
	return r
}
