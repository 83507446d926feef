package execution

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Leased is an execution on a lease: it may have effects outside the database.
type Leased interface {
	Execution
	// Fence is the mark of its claim, or of the take that its task is in, which may have
	// others.
	Fence() uuid.UUID
	// Instance is the random id of the database.
	Instance(ctx context.Context) (uuid.UUID, error)
	// Final is why no effect may be called any more: idem.ErrFinal once the final
	// transaction has begun, idem.ErrLeaseLost if it cannot because the lease was lost;
	// nil before. Within reports whether tx is that transaction or a savepoint in it.
	Final() error
	Within(tx pgx.Tx) bool
	// Enter begins a call of an effect, unless one of the same is under way or the
	// handler has returned, or was given up; exit ends it. going is noted at once (see
	// Note); before is what was noted so far.
	Enter(scope, key string, going error) (before error, exit func(), refused error)
	// Runs says that what an effect calls is called now, and Ran reports whether it
	// ever was under this lease.
	Runs(scope, key string)
	Ran(scope, key string) bool
	// Bind says that an effect has started, so that a claim and its request belong
	// together; or, if it is not certain, that it has if a transaction of the
	// handler's own is committed.
	Bind(certain bool)
	// Note says what a call has come to, if the handler's own end does not count because
	// of it, in place of what was said of the same effect before; nil if it is
	// known what the effect has come to.
	Note(scope, key string, why error) (before error)
	// Lose says that the lease was lost.
	Lose()
}
