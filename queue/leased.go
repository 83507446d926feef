package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/execution"
	"github.com/idem-go/idem/internal/pgsql/tasks"
	"github.com/jackc/pgx/v5"
)

// leased is one run of a handler on a lease, as the handler sees it.
type leased struct {
	*run
	*execution.Calls // those of all of the attempt's runs
}

var _ execution.Leased = (*leased)(nil)

// Fence is the mark of the take, which the tasks that were taken together share.
func (l *leased) Fence() uuid.UUID { return l.task.take.fence }

// Instance is the random id of the database.
func (l *leased) Instance(ctx context.Context) (uuid.UUID, error) { return l.w.db.Instance(ctx) }

// Final is why no effect may be called any more, now that the final transaction has begun;
// nil before.
func (l *leased) Final() error {
	switch {
	case !l.tx.begun():
		return nil
	case l.task.lost.Load():
		return idem.ErrLeaseLost
	}
	return idem.ErrFinal
}

// Within reports whether x is the final transaction or a savepoint in it.
func (l *leased) Within(x pgx.Tx) bool { return l.owns(x) }

// Enter begins a call of an effect in this run.
func (l *leased) Enter(scope, key string, going error) (before error, exit func(), refused error) {
	before, exit, begun := l.effects.Begin(scope, key, going)
	switch {
	case begun:
		return before, exit, nil
	case errors.Is(context.Cause(l.ctx), idem.ErrLeaseLost):
		return nil, nil, idem.ErrLeaseLost
	}
	return nil, nil, errNotEntered
}

var errNotEntered = fmt.Errorf("%w: it is called twice at once in this handler, or after that has returned or was given up", idem.ErrInFlight)

// Bind does nothing: a task is its own intent.
func (l *leased) Bind(bool) {}

// Lose says that the lease was lost.
func (l *leased) Lose() { l.lose() }

// lose says that the lease was lost: the handler's context ends.
func (a *attempt) lose() {
	a.task.lost.Store(true)
	a.stop(idem.ErrLeaseLost)
}

// owns reports whether x is the run's transaction or a savepoint in it.
func (r *run) owns(x pgx.Tx) bool {
	t, ours := x.(*tx)
	return ours && t.transaction == r.tx.transaction
}

// Hold holds the task to the end of a transaction of the handler's.
func (r *run) Hold(ctx context.Context, x pgx.Tx) (held bool, err error) {
	own := r.owns(x)
	outer := own && !x.(*tx).nested // what a savepoint holds ends with its rollback
	if own && r.tx.held {
		return true, nil
	}
	tag, err := x.Exec(ctx, tasks.Fence, r.task.take.queue, r.task.id, r.task.take.fence)
	switch {
	case err != nil:
		return false, err
	case tag.RowsAffected() == 0:
		r.lose()
		return false, nil
	}
	if outer {
		r.tx.held = true
	}
	return true, nil
}

// Observe hands an event of the handler's on.
func (a *attempt) Observe(e idem.Event) {
	e.Queue, e.TaskKind, e.TaskID, e.Attempt = a.task.take.queue, a.task.kind, a.task.id, int(a.task.attempts)+1
	if a.task.key != nil {
		e.Key = *a.task.key
	}
	a.w.db.Observe(a.ctx, e)
}
