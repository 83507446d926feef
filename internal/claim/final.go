package claim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgsql/keys"
	"github.com/jackc/pgx/v5"
)

// newFinal is the final transaction of a lease. It is opened by its first statement,
// as a lazy claim is, and takes a connection no sooner.
func newFinal(l *Lease) *Claim {
	c := &Claim{intent: l.intent, fence: l.fence, pool: l.leases.pool, lease: l}
	c.Outcome = Fresh
	c.session = &session{claim: c, lazy: true}
	c.tx = &tx{session: c.session}
	return c
}

// attach gives the final transaction its connection.
func (c *Claim) attach(ctx context.Context) error {
	s := c.session
	if c.lease == nil || s.conn != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, acquireLimit)
	defer cancel()
	conn, err := c.pool.Acquire(ctx)
	if err != nil {
		s.failure = fmt.Errorf("%w: the final transaction: %w", idem.ErrUnavailable, err)
		return s.failure
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed { // the handler was given up meanwhile
		conn.Release()
		return pgx.ErrTxClosed
	}
	c.pooled.Store(conn)
	s.conn = conn.Conn()
	return nil
}

// detach gives up a connection that was dead before the final transaction had begun on
// it, so that it can begin on another; nothing has been committed on this one.
func (c *Claim) detach() bool {
	s := c.session
	if c.lease == nil || !s.conn.IsClosed() || c.deaths == maxBegins {
		return false
	}
	c.deaths++
	if conn := c.pooled.Swap(nil); conn != nil {
		conn.Release()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn = nil
	return true
}

// openedFinal reads the results of the batch that opens a final transaction.
func (c *Claim) openedFinal(results pgx.BatchResults) (o opened, err error) {
	if _, err = results.Exec(); err != nil {
		return o, err
	}
	tag, err := results.Exec()
	if err != nil {
		return o, err
	}
	o.claimed = tag.RowsAffected() == 1
	_, err = results.Exec()
	return o, err
}

// begun reports whether the final transaction has a connection, and lets no further
// call on it: the handler has ended.
func (c *Claim) begun() bool {
	s := c.session
	s.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn != nil
}

// readBackFinal learns whether the COMMIT of a final transaction took effect. The
// transaction holds the key's row to its end: whoever can lock it knows that it is
// over, and the row says how.
func (c *Claim) readBackFinal(ctx context.Context, cause error) Result {
	ctx, cancel := detached(ctx)
	defer cancel()
	for {
		held, found, err := c.lookFinal(ctx)
		switch {
		case err != nil: // the database may be on its way back
		case held:
			return Result{Ending: Unavailable, Err: errors.Join(errNotCommitted, cause)}
		case found != nil && found.fence == c.fence:
			return c.confirm(ctx, cause)
		default:
			return Result{Ending: LeaseLost, Err: cause}
		}
		select {
		case <-time.After(readBackPause):
		case <-ctx.Done():
			return Result{Ending: Unavailable, Err: errors.Join(errUnproven, cause, err)}
		}
	}
}

// lookFinal waits for the row and reports whether it is still the claim's, or what
// has become of it.
func (c *Claim) lookFinal(ctx context.Context) (held bool, found *Found, err error) {
	in := c.intent
	tag, err := c.pool.Exec(ctx, keys.Await, in.Scope, in.Key, c.fence)
	if err != nil || tag.RowsAffected() == 1 {
		return err == nil, nil, err
	}
	found, err = read(c.pool.QueryRow(ctx, keys.Read, in.Scope, in.Key), in)
	return false, found, err
}
