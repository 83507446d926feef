package claim

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/idem-go/idem/internal/pgsql/keys"
	sqltx "github.com/idem-go/idem/internal/pgsql/tx"
	"github.com/idem-go/idem/internal/standby"
	"github.com/jackc/pgx/v5"
)

// lost reads the row of the claim that was first.
func (c *Claim) lost(ctx context.Context, cause error) Result {
	if c.intent.Key == "" {
		return Result{Ending: Unavailable, Err: cause}
	}
	found, err := read(c.pool.QueryRow(ctx, keys.Read, c.intent.Scope, c.intent.Key), c.intent)
	if err != nil || found == nil {
		return Result{Ending: Unavailable, Err: errors.Join(cause, err)}
	}
	return Result{Ending: Lost, Found: *found, Err: cause}
}

// readBackPause spaces the questions after a COMMIT that may still be on its way.
const readBackPause = 50 * time.Millisecond

var (
	errNotCommitted = errors.New("the transaction is over and has not committed")
	errUnproven     = errors.New("whether the transaction has committed could not be learnt in time")
	errNotBound     = errors.New("the key could not be bound: a repeat may run again")
	errUnconfirmed  = errors.New("the transaction has committed, and no synchronous standby has confirmed it")
)

// readBack learns, on other connections, whether a COMMIT whose reply was lost
// took effect. Our own fence in the row says that it did, another's that it can
// not have. A row that is absent proves that it did not only together with the
// key's lock, which the old transaction holds until its end; until then the
// COMMIT may still be on its way. The handler is not run again in any case.
func (c *Claim) readBack(ctx context.Context, cause error) Result {
	c.destroy(ctx)
	if c.lease != nil {
		return c.readBackFinal(ctx, cause)
	}
	if c.intent.Key == "" {
		return Result{Ending: Unavailable, Err: errors.Join(errUnproven, cause)}
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	for {
		other, err := c.look(ctx)
		switch {
		case err != nil: // the database may be on its way back
		case other.fence == c.fence:
			return c.confirm(ctx, cause)
		case other.fence != uuid.Nil:
			return Result{Ending: Lost, Found: other, Err: cause}
		case other.Outcome != InFlight && advisoryLocks:
			return Result{Ending: Unavailable, Err: errors.Join(errNotCommitted, cause)}
		}
		select {
		case <-time.After(readBackPause):
		case <-ctx.Done():
			return Result{Ending: Unavailable, Err: errors.Join(errUnproven, cause, err)}
		}
	}
}

// look claims the key as anybody would, to see what is there, and lets go of it.
func (c *Claim) look(ctx context.Context) (Found, error) {
	in := c.intent
	in.Lazy, in.Started, in.Isolation = false, nil, pgx.ReadCommitted
	other, err := begin(ctx, c.pool, in)
	if err != nil {
		return Found{}, err
	}
	if other.Outcome == Fresh {
		other.rollback(ctx)
	}
	return other.Found, nil
}

// confirm makes sure that what was read back outlives a failover as far as the
// server's settings promise it.
func (c *Claim) confirm(ctx context.Context, cause error) Result {
	conn, err := c.pool.Acquire(ctx)
	if err == nil {
		defer conn.Release()
		standby.Warned(conn.Conn().PgConn())
		_, err = conn.Exec(ctx, keys.Confirm, c.intent.Scope, c.intent.Key, c.fence)
	}
	if err != nil || standby.Warned(conn.Conn().PgConn()) {
		return Result{Ending: Unavailable, Err: errors.Join(errUnconfirmed, cause, err)}
	}
	return Result{Ending: Remembered, Err: cause}
}

// disconnected ends a claim whose connection is gone while the handler had it.
// The server rolls back, unless the handler had committed: where that is possible
// the transaction's id tells, and where it does not the key is bound.
func (c *Claim) disconnected(ctx context.Context, cause error) Result {
	s := c.session
	if !s.mayHaveCommitted() {
		return Result{Ending: Unavailable, Err: cause}
	}
	if id := s.id.Load(); id != nil && c.aborts(ctx, *id) {
		return Result{Ending: Unavailable, Err: cause}
	}
	return c.bind(ctx)
}

// aborts waits for the end of a transaction and reports whether it is proved to
// have been rolled back.
func (c *Claim) aborts(ctx context.Context, id string) bool {
	for {
		var status *string
		err := c.pool.QueryRow(ctx, sqltx.Status, id).Scan(&status)
		if err == nil && status != nil && *status == "aborted" {
			return true
		}
		if err == nil && (status == nil || *status == "committed") {
			return false
		}
		select {
		case <-time.After(readBackPause):
		case <-ctx.Done():
			return false
		}
	}
}

// bind remembers that the handler may have committed by itself, so that no repeat
// does its work again. It tries until its time is over: until it has succeeded,
// nothing keeps a repeat from running.
func (c *Claim) bind(ctx context.Context) Result {
	if c.intent.Key == "" || c.session.bound.Load() {
		return Result{Ending: Bound, Err: errCommitted}
	}
	for {
		sql, args := c.bindStatement()
		_, err := c.pool.Exec(ctx, sql, args...)
		if err == nil {
			return Result{Ending: Bound, Err: errCommitted}
		}
		select {
		case <-time.After(readBackPause):
		case <-ctx.Done():
			return Result{Ending: Bound, Err: errors.Join(errCommitted, errNotBound, err)}
		}
	}
}

// bindHere binds at once, on the connection on which the handler has just
// committed, so that there is as little time as can be in which a crash would
// leave the key free.
func (c *Claim) bindHere() {
	conn := c.session.conn
	c.session.endReading() // the rest of a batch keeps the connection busy
	if c.intent.Key == "" || conn.IsClosed() || c.session.bound.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), commitLimit)
	defer cancel()
	if conn.PgConn().TxStatus() != 'I' { // it began another
		if _, err := conn.Exec(ctx, sqltx.Rollback); err != nil {
			return
		}
	}
	sql, args := c.bindStatement()
	if _, err := conn.Exec(ctx, sql, args...); err == nil {
		c.session.bound.Store(true)
	}
}

func (c *Claim) bindStatement() (sql string, args []any) {
	in := c.intent
	if c.lease != nil {
		return keys.Doubt, []any{in.Scope, in.Key, c.fence}
	}
	return keys.Bind, []any{in.Scope, in.Key, c.fence, in.Fingerprint.Version, in.Fingerprint.Sum,
		in.By.Traceparent, in.By.ID}
}
