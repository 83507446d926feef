package claim

import (
	"context"
	"errors"

	"github.com/idem-go/idem/internal/pgsql/keys"
	sqltx "github.com/idem-go/idem/internal/pgsql/tx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// open begins the transaction, takes the locks, reads what is remembered and
// sets the savepoint, all in one round trip.
func (c *Claim) open(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, commitLimit)
	defer cancel()
	results := c.session.conn.SendBatch(ctx, c.opening())
	o, err := c.opened(results)
	if err = errors.Join(err, results.Close()); err != nil {
		return err
	}
	return c.judge(ctx, o)
}

// opening is the batch that opens a transaction. Its first statement begins it.
func (c *Claim) opening() *pgx.Batch {
	iso := c.intent.Isolation
	if iso == "" {
		iso = pgx.ReadCommitted // whatever the database's default is
	}
	limit, lock, idle := milliseconds(c.intent.Limit), milliseconds(lockLimit), milliseconds(c.intent.Limit+idleSlack)
	b := &pgx.Batch{}
	b.BeginTx(pgx.TxOptions{IsoLevel: iso})
	if c.lease != nil {
		b.Queue(sqltx.RequestLimits, limit, lock, idle)
		b.Queue(keys.Fence, c.intent.Scope, c.intent.Key, c.fence)
		b.Queue(sqltx.Savepoint)
		return b
	}
	if c.intent.Key != "" && advisoryLocks {
		b.Queue(keys.Claim, lockKey(c.intent.Scope, c.intent.Key), c.intent.lockRequest(), limit, lock, idle)
	} else {
		b.Queue(sqltx.RequestLimits, limit, lock, idle)
	}
	if c.intent.Key != "" {
		b.Queue(keys.Read, c.intent.Scope, c.intent.Key)
	}
	b.Queue(sqltx.Savepoint)
	return b
}

// opened is what the opening batch tells.
type opened struct {
	claimed bool
	found   *Found
}

// opened reads the results of the opening batch, and none after them.
func (c *Claim) opened(results pgx.BatchResults) (o opened, err error) {
	c.tx.Tx = results.Tx()
	if _, err = results.Exec(); err != nil {
		return o, err
	}
	if c.lease != nil {
		return c.openedFinal(results)
	}
	if c.intent.Key != "" && advisoryLocks {
		var claimed *bool
		if err = results.QueryRow().Scan(&claimed, nil, nil, nil, nil); err != nil {
			return o, err
		}
		o.claimed = claimed != nil && *claimed
	} else if _, err = results.Exec(); err != nil {
		return o, err
	} else {
		o.claimed = true
	}
	if c.intent.Key != "" {
		if o.found, err = read(results.QueryRow(), c.intent); err != nil {
			return o, err
		}
	}
	_, err = results.Exec()
	return o, err
}

// judge decides what an opened transaction has found, and makes a fresh one
// ready for the handler.
func (c *Claim) judge(ctx context.Context, o opened) error {
	switch {
	case o.found != nil && !o.found.over:
		c.Found = *o.found
		return nil
	case !o.claimed:
		c.Outcome = InFlight
		return nil
	case c.lease != nil:
		c.Outcome = Fresh
		return nil
	}
	c.Outcome = Fresh
	if o.found != nil {
		if err := c.expire(ctx); err != nil {
			return err
		}
	}
	if iso := c.intent.Isolation; c.intent.Key != "" && (iso == pgx.RepeatableRead || iso == pgx.Serializable) {
		if err := c.probe(ctx); err != nil {
			return err
		}
	}
	if c.intent.Started != nil {
		c.intent.Started()
	}
	return nil
}

// leave ends the transaction of a claim that is not fresh. For a key that is in
// flight it then asks whether the transaction that works on it works on the same
// request.
func (c *Claim) leave(ctx context.Context) {
	c.rollbackOnly(ctx)
	defer c.release()
	if c.Outcome != InFlight || c.lease != nil || !advisoryLocks || c.session.conn.IsClosed() {
		return
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	if rival, err := c.rival(ctx); err == nil && rival != nil {
		c.Found = *rival
	}
}

// rival is what is found if the key's owner works on another request: an answer
// that it left meanwhile, or a mismatch. A mismatch is final, so a row that the
// claim's snapshot was too old to see counts first.
func (c *Claim) rival(ctx context.Context) (*Found, error) {
	in, conn := c.intent, c.session.conn
	var rival bool
	err := conn.QueryRow(ctx, keys.Rival, lockKey(in.Scope, in.Key), in.lockRequest()).Scan(&rival)
	if err != nil || !rival {
		return nil, err
	}
	found, err := read(conn.QueryRow(ctx, keys.Read, in.Scope, in.Key), in)
	if err != nil || found != nil && !found.over {
		return found, err
	}
	return &Found{Outcome: Mismatch}, nil
}

// Rival asks of a key that is in flight in another process, on a connection of
// its own, what rival says. It reports nothing where nothing can be told.
func Rival(ctx context.Context, pool *pgxpool.Pool, in Intent) (Found, bool) {
	ctx, cancel := context.WithTimeout(ctx, acquireLimit)
	defer cancel()
	if in.Lease > 0 {
		return rivalOnLease(ctx, pool, in)
	}
	if !advisoryLocks {
		return Found{}, false
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return Found{}, false
	}
	defer conn.Release()
	c := &Claim{intent: in, pool: pool}
	c.session = &session{claim: c, conn: conn.Conn()}
	rival, err := c.rival(ctx)
	if err != nil || rival == nil {
		return Found{}, false
	}
	return *rival, true
}

// rivalOnLease is Rival where the row tells it.
func rivalOnLease(ctx context.Context, pool *pgxpool.Pool, in Intent) (Found, bool) {
	found, err := read(pool.QueryRow(ctx, keys.Read, in.Scope, in.Key), in)
	if err != nil || found == nil || found.over || found.Outcome != Mismatch {
		return Found{}, false
	}
	return *found, true
}

// expire removes a row whose time is over and sets the savepoint anew: rolling
// back to it must not bring the row back.
func (c *Claim) expire(ctx context.Context) error {
	b := &pgx.Batch{}
	b.Queue(sqltx.ReleaseSavepoint)
	b.Queue(keys.Expire, c.intent.Scope, c.intent.Key)
	b.Queue(sqltx.Savepoint)
	return c.session.conn.SendBatch(ctx, b).Close()
}

// probe asks the unique index for a row that the transaction's snapshot is too
// old to see.
func (c *Claim) probe(ctx context.Context) error {
	b := &pgx.Batch{}
	b.Queue(keys.Probe, c.intent.Scope, c.intent.Key, c.fence)
	b.Queue(sqltx.RollbackToSavepoint)
	return c.session.conn.SendBatch(ctx, b).Close()
}
