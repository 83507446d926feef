package claim

import (
	"errors"

	"github.com/idem-go/idem/internal/sqlstate"
	"github.com/jackc/pgx/v5/pgconn"
)

// firstWasOther reports whether err says that the key was answered by another
// claim: the unique index is the guarantee.
func firstWasOther(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == sqlstate.UniqueViolation &&
		pg.SchemaName == "idem" && pg.TableName == "idempotency_keys"
}

// undone is how a claim ends whose statement failed with err and was rolled
// back: run again, asked again later, or not at all.
func undone(err error) Ending {
	switch {
	case sqlstate.Rerunnable(err):
		return Rerun
	case sqlstate.Permanent(err):
		return NotApplied
	default:
		return Unavailable
	}
}
