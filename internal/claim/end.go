package claim

import (
	"context"
	"errors"
	"time"

	"github.com/idem-go/idem"
	sqltx "github.com/idem-go/idem/internal/pgsql/tx"
	"github.com/idem-go/idem/internal/sqlstate"
)

// Ending is how a claim's transaction ended.
type Ending int

// The endings of a claim.
const (
	Remembered   Ending = iota + 1 // committed, answer and what goes with it
	Freed                          // rolled back, nothing remembered
	Rerun                          // rolled back; running it again may succeed
	Lost                           // rolled back; another claim was first, see Result.Found
	Contended                      // rolled back; another transaction works on the key
	NotApplied                     // rolled back, since it was not to be committed
	Bound                          // the handler committed by itself: bound as unknown
	LeaseLost                      // another claim has taken over; nothing was recorded
	Doubtful                       // a call's outcome is unknown; the claim is left to a retry
	CallInFlight                   // an effect is in flight elsewhere; the same
	Unavailable                    // rolled back, or not to be learnt
)

// Result is a claim's end. Err is the cause, where there is one.
type Result struct {
	Ending Ending
	Found  Found
	Err    error
}

var (
	errRolledBack = errors.New("the handler rolled its transaction back")
	errCommitted  = errors.New("the handler ended its transaction itself, and may have committed")
	errAborted    = errors.New("the handler answered success in an aborted transaction")
	errUnseen     = errors.New("the transaction was aborted by a statement that was not seen")
	errDeferred   = errors.New("the commit was refused")
	errDead       = errors.New("the connection was lost")
)

// Commit commits the handler's writes and remembers a; if withhold, only that
// there was an answer.
func (c *Claim) Commit(ctx context.Context, a idem.Answer, withhold bool) Result {
	ctx, cancel := detached(ctx)
	defer cancel()
	success := a.Status >= 200 && a.Status < 300
	if r, ended := c.settle(ctx, success); ended {
		return r
	}
	if c.aborted() {
		return c.undo(ctx, NotApplied, errAborted)
	}
	return c.store(ctx, kept, a, withhold)
}

// Refuse remembers a and rolls the handler's writes back, in one transaction;
// if keepWrites, they are committed with it.
func (c *Claim) Refuse(ctx context.Context, a idem.Answer, withhold, keepWrites bool) Result {
	if keepWrites {
		return c.Commit(ctx, a, withhold)
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	if r, ended := c.settle(ctx, false); ended {
		return r
	}
	if c.intent.Key == "" {
		return c.undo(ctx, Freed, nil) // there is nothing to remember it by
	}
	if c.aborted() {
		// Nothing can be prepared in an aborted transaction, so this goes ahead
		// of the rest.
		if _, err := c.session.conn.Exec(ctx, dropped.prefix()); err != nil {
			return c.prefixFailed(ctx, err)
		}
	}
	return c.store(ctx, dropped, a, withhold)
}

// Free rolls everything back: the key is free.
func (c *Claim) Free(ctx context.Context) Result {
	ctx, cancel := detached(ctx)
	defer cancel()
	if r, ended := c.settle(ctx, false); ended {
		return r
	}
	return c.undo(ctx, Freed, nil)
}

// Abandon gives up a handler that has not returned in time: its connection is
// closed under it, which rolls everything back. It may be called while the
// handler uses the transaction.
func (c *Claim) Abandon(ctx context.Context) Result {
	c.session.close()
	ctx, cancel := detached(ctx)
	defer cancel()
	pooled := c.pooled.Swap(nil)
	if pooled == nil { // a lazy claim that had found an answer
		return c.concluded()
	}
	conn := pooled.Hijack().PgConn()
	// A backend in the middle of a statement does not notice that its client
	// is gone.
	err := conn.CancelRequest(ctx)
	return c.disconnected(ctx, errors.Join(err, conn.Conn().Close()))
}

// strayLimit is how long the end of a handler waits for goroutines that it has
// left behind on the connection.
const strayLimit = time.Second

var errStray = errors.New("the handler has returned and still uses its transaction")

// settle looks, before anything is answered, at what the handler has left: a
// transaction that it ended itself, or one that says nothing about the request.
// It reports whether that ended the claim.
func (c *Claim) settle(ctx context.Context, success bool) (Result, bool) {
	select {
	case <-c.session.close():
	case <-time.After(strayLimit):
		r := c.Abandon(ctx)
		r.Err = errors.Join(errStray, r.Err)
		return r, true
	}
	if r, ended := c.conclude(ctx); ended {
		return r, true
	}
	s := c.session
	s.endReading() // as the end of any transaction closes its rows
	// Within a transaction every end asks for the claim's savepoint, which tells
	// more than what was seen.
	status := s.conn.PgConn().TxStatus()
	switch {
	case s.conn.IsClosed():
		c.release()
		return c.disconnected(ctx, errors.Join(errDead, s.failure)), true
	case status == 'I':
		return c.replaced(ctx), true
	case s.refused, s.rolledBack:
		return c.undo(ctx, NotApplied, errRolledBack), true
	case s.failure != nil && !(success && status == 'T'):
		return c.undo(ctx, undone(s.failure), s.failure), true
	case status == 'E' && !s.failed:
		return c.undo(ctx, Unavailable, errUnseen), true
	}
	return Result{}, false
}

// undo rolls back what nothing has been stored for yet. That the claim's
// savepoint is still there proves that the handler has committed nothing.
func (c *Claim) undo(ctx context.Context, e Ending, cause error) Result {
	_, err := c.session.conn.Exec(ctx, sqltx.Undo)
	switch {
	case sqlstate.Code(err) == sqlstate.NoSuchSavepoint:
		return c.replaced(ctx)
	case sqlstate.Fatal(err):
		c.release()
		return c.disconnected(ctx, errors.Join(cause, err))
	}
	return c.rolledBackAs(ctx, e, cause)
}

// replaced ends a claim whose transaction is gone: the handler ended it, and
// maybe began another. Only a ROLLBACK that was seen, with nothing beside it
// that was not, proves that nothing was committed.
func (c *Claim) replaced(ctx context.Context) Result {
	s := c.session
	if s.rolledBack && !s.mayHaveCommitted() {
		return c.rolledBackAs(ctx, NotApplied, errRolledBack)
	}
	c.rollback(ctx)
	return c.bind(ctx)
}

func (c *Claim) aborted() bool { return c.session.conn.PgConn().TxStatus() == 'E' }

func (c *Claim) rolledBackAs(ctx context.Context, e Ending, err error) Result {
	c.rollback(ctx)
	return Result{Ending: e, Err: err}
}

// rollback ends the transaction and gives the connection back. The pool closes
// one that is still in a transaction.
func (c *Claim) rollback(ctx context.Context) {
	c.rollbackOnly(ctx)
	c.release()
}

func (c *Claim) rollbackOnly(ctx context.Context) {
	c.session.close()
	if conn := c.session.conn; conn != nil && !conn.IsClosed() && conn.PgConn().TxStatus() != 'I' {
		ctx, cancel := detached(ctx)
		defer cancel()
		_, _ = conn.Exec(ctx, sqltx.Rollback) // a failure leaves the status that the pool looks at
	}
}

// destroy closes a connection of which nothing is known.
func (c *Claim) destroy(ctx context.Context) {
	_ = c.session.conn.Close(ctx)
	c.release()
}

// release gives the connection back, unless the handler may have kept it.
func (c *Claim) release() {
	conn := c.pooled.Swap(nil)
	if conn == nil {
		return
	}
	if c.session.exposed.Load() {
		ctx, cancel := context.WithTimeout(context.Background(), commitLimit)
		defer cancel()
		_ = conn.Conn().Close(ctx)
	}
	conn.Release()
}

// detached is a context that the client's going away does not end: what has
// begun is finished.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), commitLimit)
}
