package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/idem-go/idem/internal/pgsql/admin"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrReadOnly reports a database that accepts no writes.
var ErrReadOnly = errors.New("admin: the database is read-only")

// Writable returns nil if the pool's database accepts writes. It lets a command
// say what is wrong before it begins; a failover right after it is still found
// by the write itself. Errors: ErrReadOnly, idem.ErrUnavailable.
func Writable(ctx context.Context, pool *pgxpool.Pool) error {
	var standby, readOnly bool
	err := pool.QueryRow(ctx, admin.Writable).Scan(&standby, &readOnly)
	switch {
	case err != nil:
		return failure(ctx, "ask whether the database is read-only", err)
	case standby:
		return fmt.Errorf("%w: it is a standby; connect to its primary", ErrReadOnly)
	case readOnly:
		return fmt.Errorf("%w: default_transaction_read_only is on for this role, database or connection", ErrReadOnly)
	}
	return nil
}
