package claim

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/execution"
	"github.com/idem-go/idem/internal/pgsql/keys"
	"github.com/idem-go/idem/internal/sqlstate"
	"github.com/idem-go/idem/internal/standby"
	"github.com/jackc/pgx/v5"
)

// Lease is one claim on a lease: committed first, renewed while its owner lives, and
// ended together with the answer. If its outcome is Fresh it must be closed.
type Lease struct {
	Found
	intent Intent
	fence  uuid.UUID
	leases *Leases
	final  *Claim

	ctx  context.Context // of the handler: it ends when the lease is lost
	lose context.CancelCauseFunc

	bound atomic.Bool // an effect has started, in this run or an earlier one
	maybe atomic.Bool // or has if the transaction that it was applied in was committed
	ended atomic.Bool // nothing is left to be ended

	execution.Calls // those that were made under this claim
}

const (
	// askLimit bounds one try, so that there is time for a second: its fence finds a
	// claim whose reply was lost.
	askLimit = acquireLimit / 2
	// askPause spaces the questions while another claim is on its way in, and
	// maxAsks bounds them: it is in flight, then.
	askPause = 5 * time.Millisecond
	maxAsks  = 20
)

// Begin claims in on a lease. An error wraps idem.ErrUnavailable unless asking again
// does not help: nothing has run.
func (ls *Leases) Begin(base context.Context, in Intent) (*Lease, error) {
	fence, err := uuid.NewRandom()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(base, acquireLimit)
	defer cancel()
	l := &Lease{intent: in, fence: fence, leases: ls}
	for ask := 1; ; ask++ {
		claimed, again, err := l.claim(ctx)
		switch {
		case errors.Is(err, errUnconfirmed):
			_, _ = ls.pool.Exec(ctx, keys.Relinquish, in.Scope, in.Key, fence) // or its time ends it
			return nil, refused(err)
		case err != nil && ask < maxBegins && (sqlstate.Fatal(err) || sqlstate.Rerunnable(err)):
			continue // the connection was dead, or its reply was lost: the fence will tell
		case err != nil:
			return nil, refused(err)
		case claimed:
			l.begin(base)
			return l, nil
		case !again:
			return l, nil
		case ask == maxAsks:
			l.Outcome = InFlight
			return l, nil
		}
		select {
		case <-time.After(askPause):
		case <-ctx.Done():
			return nil, refused(ctx.Err())
		}
	}
}

// claim takes the key, or tells what is remembered of it.
func (l *Lease) claim(ctx context.Context) (claimed, again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	in := l.intent
	found, claimed, err := l.ask(ctx)
	if err != nil || claimed {
		return claimed, false, err
	}
	if found == nil {
		return false, true, nil
	}
	l.Found = *found
	switch {
	case found.fence == l.fence: // by an earlier try, whose reply was lost
		return true, false, nil
	case found.over:
		_, err := l.leases.pool.Exec(ctx, keys.Expire, in.Scope, in.Key)
		return false, true, err
	case found.Outcome != Abandoned:
		return false, false, nil
	}
	return l.retake(ctx, found)
}

// retake takes over a claim whose lease is over.
func (l *Lease) retake(ctx context.Context, found *Found) (claimed, again bool, err error) {
	in := l.intent
	conn, err := l.leases.pool.Acquire(ctx)
	if err != nil {
		return false, false, err
	}
	defer conn.Release()
	standby.Warned(conn.Conn().PgConn()) // of what went before
	err = conn.QueryRow(ctx, keys.Retake, in.Scope, in.Key, l.fence, in.Fingerprint.Version, in.Fingerprint.Sum,
		in.Lease.Seconds(), in.TTL.Seconds(), found.fence, found.same, in.By.Traceparent, in.By.ID).Scan(&l.Found.bound)
	switch {
	case errors.Is(err, pgx.ErrNoRows): // somebody else has, or the owner is in a transaction
		l.Outcome = InFlight
		return false, false, nil
	case err == nil && standby.Warned(conn.Conn().PgConn()):
		err = errUnconfirmed
	}
	return err == nil, false, err
}

// ask claims the key if nothing is remembered of it, and tells what is. Neither means
// that another claim is on its way.
func (l *Lease) ask(ctx context.Context) (found *Found, claimed bool, err error) {
	in := l.intent
	conn, err := l.leases.pool.Acquire(ctx)
	if err != nil {
		return nil, false, err
	}
	defer conn.Release()
	standby.Warned(conn.Conn().PgConn()) // of what went before
	var r stored
	err = conn.QueryRow(ctx, keys.Lease, in.Scope, in.Key, l.fence, in.Fingerprint.Version, in.Fingerprint.Sum,
		in.Lease.Seconds(), in.TTL.Seconds(), in.By.Traceparent, in.By.ID).Scan(append([]any{&claimed}, r.columns()...)...)
	switch {
	case err != nil:
		return nil, false, err
	case claimed && standby.Warned(conn.Conn().PgConn()):
		return nil, false, errUnconfirmed
	case claimed || !r.state.Valid:
		return nil, claimed, nil
	}
	return r.judge(in), false, nil
}

// begin starts what goes on while the handler runs.
func (l *Lease) begin(ctx context.Context) {
	l.Outcome = Fresh
	l.bound.Store(l.Found.bound)
	l.ctx, l.lose = context.WithCancelCause(ctx)
	l.final = newFinal(l)
	l.leases.add(l)
	if l.intent.Started != nil {
		l.intent.Started()
	}
}

// Context is the handler's: it ends, with idem.ErrLeaseLost as its cause, when the
// lease is lost.
func (l *Lease) Context() context.Context { return l.ctx }

// Again readies a lease whose run has ended with Rerun for another.
func (l *Lease) Again() { l.final = newFinal(l) }

// Tx is the final transaction.
func (l *Lease) Tx() pgx.Tx { return l.final.tx }

// Fence is the claim's mark.
func (l *Lease) Fence() uuid.UUID { return l.fence }

// Final is why no effect may be called any more, now that the final transaction has begun
// or the guard has answered; nil before.
func (l *Lease) Final() error {
	switch {
	case l.final.pooled.Load() == nil && !l.final.session.answered.Load():
		return nil
	case l.lost():
		return idem.ErrLeaseLost
	}
	return idem.ErrFinal
}

// Within reports whether x is the final transaction or a savepoint in it.
func (l *Lease) Within(x pgx.Tx) bool {
	t, ours := x.(*tx)
	return ours && t.session == l.final.session
}

// Bind says that an effect of the request has started, or, if it is not certain, that
// it has if a transaction of the handler's own was committed.
func (l *Lease) Bind(certain bool) {
	if certain {
		l.bound.Store(true)
	} else {
		l.maybe.Store(true)
	}
}

// Hold holds the claim to the end of a transaction of the handler's own, and binds it if
// that is committed. It reports false if the lease was lost.
func (l *Lease) Hold(ctx context.Context, x pgx.Tx) (held bool, err error) {
	tag, err := x.Exec(ctx, keys.Bound, l.intent.Scope, l.intent.Key, l.fence, l.intent.Lease.Seconds())
	switch {
	case err != nil:
		return false, err
	case tag.RowsAffected() == 0:
		l.Lose()
		return false, nil
	}
	l.Bind(false)
	return true, nil
}

// Bound reports whether claim and request belong together for good. Where that cannot
// be learnt they do.
func (l *Lease) Bound(ctx context.Context) bool {
	if !l.bound.Load() && l.maybe.Load() {
		ctx, cancel := detached(ctx)
		defer cancel()
		in := l.intent
		found, err := read(l.leases.pool.QueryRow(ctx, keys.Read, in.Scope, in.Key), in)
		l.bound.Store(err != nil || found == nil || found.bound)
	}
	return l.bound.Load()
}

// Lose says that the lease was lost: the handler's context ends.
func (l *Lease) Lose() { l.lose(idem.ErrLeaseLost) }

func (l *Lease) lost() bool { return errors.Is(context.Cause(l.ctx), idem.ErrLeaseLost) }

// Close ends the lease if no end of it has: the claim is free if no effect of it has
// started, and otherwise left to the next retry.
func (l *Lease) Close(ctx context.Context) {
	if l.Outcome != Fresh {
		return
	}
	defer l.lose(context.Canceled)
	if !l.ended.Load() {
		ctx, cancel := detached(ctx)
		defer cancel()
		_, _ = l.letGo(ctx) // or its time ends it
	}
}

// letGo gives the key back, and reports whether it was still the claim's.
func (l *Lease) letGo(ctx context.Context) (had bool, err error) {
	l.leases.remove(l)
	l.ended.Store(true)
	in, pool := l.intent, l.leases.pool
	if !l.bound.Load() {
		tag, err := pool.Exec(ctx, keys.Relinquish, in.Scope, in.Key, l.fence)
		if err != nil || tag.RowsAffected() == 1 {
			return true, err
		}
	}
	tag, err := pool.Exec(ctx, keys.Abandon, in.Scope, in.Key, l.fence, in.TTL.Seconds())
	if err != nil || tag.RowsAffected() == 1 {
		return true, err
	}
	// A COMMIT of which nothing was learnt may have answered it.
	found, err := read(pool.QueryRow(ctx, keys.Read, in.Scope, in.Key), in)
	return err != nil || found != nil && found.fence == l.fence, err
}

// complete remembers an answer where there is no final transaction. It is repeated
// until it is known to be there: doing it twice is doing it once.
func (l *Lease) complete(ctx context.Context, w writes, a idem.Answer, withhold bool) Result {
	for {
		r, known := l.completeOnce(ctx, w, a, withhold)
		if known {
			return r
		}
		select {
		case <-time.After(readBackPause):
		case <-ctx.Done():
			return Result{Ending: Unavailable, Err: errors.Join(errUnproven, r.Err)}
		}
	}
}

func (l *Lease) completeOnce(ctx context.Context, w writes, a idem.Answer, withhold bool) (r Result, known bool) {
	conn, err := l.leases.pool.Acquire(ctx)
	if err != nil {
		return Result{Err: err}, false
	}
	defer conn.Release()
	standby.Warned(conn.Conn().PgConn()) // of what went before
	sql, args := l.final.answer(w, a, withhold)
	tag, err := conn.Exec(ctx, sql, args...)
	switch {
	case sqlstate.Permanent(err):
		return Result{Ending: NotApplied, Err: err}, true
	case err != nil:
		return Result{Err: err}, false
	case standby.Warned(conn.Conn().PgConn()):
		return Result{Ending: Unavailable, Err: errUnconfirmed}, true
	case tag.RowsAffected() == 1:
		return Result{Ending: Remembered}, true
	}
	// Nothing was there to be completed: by an earlier try, whose reply was lost?
	found, err := read(conn.QueryRow(ctx, keys.Read, l.intent.Scope, l.intent.Key), l.intent)
	switch {
	case err != nil:
		return Result{Err: err}, false
	case found != nil && found.fence == l.fence:
		return Result{Ending: Remembered}, true
	default:
		return Result{Ending: LeaseLost, Err: fmt.Errorf("%w: the answer was not remembered", idem.ErrLeaseLost)}, true
	}
}
