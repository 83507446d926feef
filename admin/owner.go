package admin

import (
	"context"
	"errors"
	"time"

	"github.com/idem-go/idem/internal/claim"
	"github.com/idem-go/idem/internal/pgsql/admin"
	"github.com/jackc/pgx/v5"
)

// Owner is the database session that works on a key. Behind a pooler it is the
// server's session, not the client's.
type Owner struct {
	// PID is the server process; 0 if it has none any more.
	PID int
	// Application and Address are the session's application_name and the
	// client's address; empty where this role may not see them, or there are
	// none.
	Application, Address string
	// Activity is what the session does: "active", or "idle in transaction"
	// between two statements.
	Activity string
	// Since is when its transaction began, and For how long ago that is by the
	// database's clock; both zero where this role may not see them.
	Since time.Time
	For   time.Duration
}

// querier is a pool, a connection or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// owner is who holds the key's lock, or the row of its claim; nil if nobody does.
// Without advisory locks only the latter is seen.
func owner(ctx context.Context, q querier, scope, key string) (*Owner, error) {
	lock, _ := claim.Locks(scope, key, nil)
	var o Owner
	var since *time.Time
	var seconds float64
	err := q.QueryRow(ctx, admin.KeyOwner, lock, scope, key).Scan(&o.PID, &o.Application, &o.Address, &o.Activity, &since, &seconds)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if since != nil {
		o.Since, o.For = *since, time.Duration(seconds*float64(time.Second))
	}
	return &o, nil
}
