// Package claim is the protocol by which one request's transaction takes a key,
// runs, and commits together with its answer: one transaction, begun with the
// claim and ended with the answer, in one round trip each. It is the one place
// that commits for requests.
package claim

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/sqlstate"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// commitLimit bounds a COMMIT, a ROLLBACK and a read-back.
	commitLimit = 10 * time.Second
	// acquireLimit bounds the wait for a connection of the pool.
	acquireLimit = 10 * time.Second
	// lockLimit bounds the wait for any row or index entry.
	lockLimit = 5 * time.Second
	// idleSlack is how much longer than its handler a transaction may live, so
	// that the handler's own limit is met first.
	idleSlack = 5 * time.Second
	// maxBegins bounds how often a claim that met a serialization failure or a
	// dead connection is begun. Nothing has run yet, so it may be repeated.
	maxBegins = 4
)

// Intent is what is claimed.
type Intent struct {
	Scope       string
	Key         string
	Fingerprint idem.Fingerprint
	// Same reports whether a stored fingerprint, maybe of another version,
	// belongs to this request.
	Same func(idem.Fingerprint) bool
	// Isolation is the transaction's level; empty means read committed.
	Isolation pgx.TxIsoLevel
	// Limit is how long the handler may run.
	Limit time.Duration
	// TTL and Tombstone are how long the answer and then the bare key are
	// remembered.
	TTL, Tombstone time.Duration
	// Lease is how long a claim on a lease (see Leases) is held between two renewals;
	// zero for one in the transaction.
	Lease time.Duration
	// Lazy lets the claim travel with the handler's first statement: the claim
	// is Fresh on trust until then.
	Lazy bool
	// By is the request itself, to be remembered with the key.
	By Request
	// Started is called once the key is known to be this claim's.
	Started func()
}

// Outcome is what a claim found.
type Outcome int

// The outcomes of a claim.
const (
	Fresh     Outcome = iota + 1 // nothing: the claim holds the key and a transaction
	Answered                     // an answer, in Found.Answer
	Withheld                     // carried out; the answer was too large to store
	Entombed                     // carried out; the answer's time is over
	Unknown                      // an operator must settle it
	Mismatch                     // the key belongs to another request
	InFlight                     // another transaction, or the owner of a lease, works on the key
	Abandoned                    // on a lease that is over, and free to be taken over
)

// Request is how the request that wrote a key's row is found: visible ASCII, and what it
// does not have is empty.
type Request struct {
	ID          string // by which logs know it
	Traceparent string // its trace context
}

// Found is what is remembered of a key.
type Found struct {
	Outcome Outcome
	Answer  idem.Answer // if Answered
	By      Request     // who wrote the row
	fence   uuid.UUID
	over    bool // its time is over: the key is free
	bound   bool // an effect of it has started
	same    bool // it belongs to this request
}

// Claim is one try at an intent. If its outcome is Fresh it holds a connection
// until exactly one of Commit, Refuse, Free and Abandon has been called.
type Claim struct {
	Found
	intent  Intent
	fence   uuid.UUID
	pool    *pgxpool.Pool
	pooled  atomic.Pointer[pgxpool.Conn] // nil once it is given back
	session *session
	tx      *tx
	lease   *Lease // whose final transaction it is, if any
	deaths  int    // of connections that it was to begin on
}

// Bound reports that no effect outside the transaction has started.
func (c *Claim) Bound(context.Context) bool { return false }

// Tx is the handler's transaction.
func (c *Claim) Tx() pgx.Tx { return c.tx }

// Begin claims in. The claim holds no connection unless its outcome is Fresh. An
// error wraps idem.ErrUnavailable unless asking again does not help: nothing has
// run.
func Begin(ctx context.Context, pool *pgxpool.Pool, in Intent) (*Claim, error) {
	for try := 1; ; try++ {
		c, err := begin(ctx, pool, in)
		if err == nil {
			return c, nil
		}
		if try == maxBegins || ctx.Err() != nil || !(sqlstate.Rerunnable(err) || errors.Is(err, errDeadConnection)) {
			return nil, refused(err)
		}
	}
}

func refused(err error) error {
	if sqlstate.Permanent(err) {
		return fmt.Errorf("idem: claim: %w", err)
	}
	return fmt.Errorf("%w: claim: %w", idem.ErrUnavailable, err)
}

// BeginUnkeyed opens a transaction with the same limits for a request without a
// key: nothing is claimed and nothing is remembered. Its outcome is Fresh.
func BeginUnkeyed(ctx context.Context, pool *pgxpool.Pool, in Intent) (*Claim, error) {
	in.Scope, in.Key = "", ""
	return Begin(ctx, pool, in)
}

// errDeadConnection marks a connection of the pool that had died before the
// claim, for example because the server was restarted.
var errDeadConnection = errors.New("the connection was dead")

func begin(ctx context.Context, pool *pgxpool.Pool, in Intent) (*Claim, error) {
	acquireCtx, cancel := context.WithTimeout(ctx, acquireLimit)
	defer cancel()
	conn, err := pool.Acquire(acquireCtx)
	if err != nil {
		return nil, err
	}
	fence, err := uuid.NewRandom()
	if err != nil {
		conn.Release()
		return nil, err
	}
	c := &Claim{intent: in, fence: fence, pool: pool}
	c.pooled.Store(conn)
	c.session = &session{claim: c, conn: conn.Conn(), lazy: in.lazy()}
	c.tx = &tx{session: c.session}
	if in.lazy() {
		c.Outcome = Fresh
		return c, nil
	}
	if err := c.open(ctx); err != nil {
		dead := conn.Conn().IsClosed()
		c.rollback(ctx)
		if dead {
			err = fmt.Errorf("%w: %w", errDeadConnection, err)
		}
		return nil, err
	}
	if c.Outcome != Fresh {
		c.leave(ctx)
	}
	return c, nil
}

func milliseconds(d time.Duration) string {
	return strconv.FormatInt(d.Milliseconds(), 10)
}
