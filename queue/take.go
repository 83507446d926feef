package queue

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgsql/tasks"
	"github.com/idem-go/idem/internal/sqlstate"
	"github.com/idem-go/idem/internal/standby"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// task is one that the worker has taken.
type task struct {
	id                     int64
	kind                   string
	key                    *string
	payload                []byte
	priority               int16
	runAt                  time.Time
	attempts, takes        int32 // those before this one, and with it
	maxAttempts, retention int32
	delay                  float64 // seconds for which it was due
	origin                 string  // the trace context in which it was enqueued
	take                   *take
	lease                  time.Duration
	handler                *handler
	lost, unwanted         atomic.Bool // the lease is; its cancellation was asked for
}

// forgets reports whether the task is deleted when it is done. One on a lease that was
// taken before may have left an effect that nobody knows the outcome of: it is left to the
// sweep, which looks for that, with its time over at once.
func (t *task) forgets() bool { return t.retention == 0 && (t.takes == 1 || !t.handler.leased) }

// take is one batch that the worker has taken, under one fence.
type take struct {
	fence   uuid.UUID
	queue   string
	alone   bool
	started int // how many of its tasks may be started, as the database knows
	begun   int // how many are
	open    int // how many have not ended
	// somebody else has to find a task of it whose end could not be recorded
	broken atomic.Bool
}

// place is the place of a task in the order in which those of one priority are taken.
type place struct {
	runAt time.Time
	id    int64
}

// fromFirst are the places before all others.
func fromFirst() []place {
	return slices.Repeat([]place{{time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), 0}}, len(priorities))
}

// takeLimit bounds one take, and how long it waits for a connection.
const takeLimit = 15 * time.Second

// takes takes up to limit tasks as k, behind the given places of each priority. What takes
// have taken whose reply was lost is given back before.
func (l *lane) takes(ctx context.Context, sql string, k *take, limit int, behind []place, lost []uuid.UUID) taken {
	t := taken{take: k}
	acquiring, cancel := context.WithTimeout(ctx, takeLimit)
	defer cancel()
	conn, err := l.w.db.Pool().Acquire(acquiring)
	if err != nil {
		t.err = err
		return t
	}
	defer conn.Release()
	// What is taken must be known here, also if the worker is told to end meanwhile.
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), takeLimit)
	defer stop()
	if t.undone, t.err = l.undo(ctx, conn, lost); t.err != nil {
		return t
	}
	standby.Warned(conn.Conn().PgConn()) // of what went before
	deadline, _ := ctx.Deadline()
	asked := time.Until(deadline)
	t.batch, t.spent, t.err = l.query(ctx, conn, sql, k, limit, behind)
	if t.err == nil && len(t.batch) > 0 && standby.Warned(conn.Conn().PgConn()) {
		t.err = errUnconfirmed
	}
	if t.err != nil { // one that the server has refused has taken nothing
		t.batch, t.lost = nil, sqlstate.Fatal(t.err)
	}
	t.age = asked - time.Until(deadline)
	k.open, t.full = len(t.batch), len(t.batch) == limit
	l.trace(ctx, t)
	return t
}

// trace makes the span of a take that has taken something, or has failed: others would only
// tell that the worker looks.
func (l *lane) trace(ctx context.Context, t taken) {
	if len(t.batch) == 0 && t.err == nil {
		return
	}
	_, end := l.w.db.Trace(ctx, idem.StepTake, idem.Event{Queue: l.queue, Elapsed: t.age})
	end(idem.Event{Queue: l.queue, Rows: int64(len(t.batch)), Err: t.err})
}

// undo gives back what takes have taken whose reply was lost, and keeps out those that are
// only late. It returns those that are through with; the others, which somebody holds a
// row of, or which are still under way, are asked for again: it waits for nobody.
func (l *lane) undo(ctx context.Context, db batches, lost []uuid.UUID) (undone []uuid.UUID, err error) {
	for _, fence := range lost {
		var left bool
		err := byIndex(ctx, db, tasks.Undo, []any{l.queue, fence, l.w.id}, func(rows pgx.Rows) (err error) {
			left, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
			return err
		})
		switch {
		case err == nil && !left:
			undone = append(undone, fence)
		case err != nil && sqlstate.Code(err) != sqlstate.LockNotAvailable:
			return undone, err
		}
	}
	return undone, nil
}

// query runs a take. spent is how long the database has looked.
func (l *lane) query(ctx context.Context, conn *pgxpool.Conn, sql string, k *take, limit int, behind []place) (batch []*task, spent time.Duration, err error) {
	dues, ids := make([]time.Time, len(behind)), make([]int64, len(behind))
	for i, p := range behind {
		dues[i], ids[i] = p.runAt, p.id
	}
	args := []any{l.queue, k.fence, l.w.id, l.kinds, l.leases, limit, k.started, priorities, dues, ids}
	var seconds float64
	err = byIndex(ctx, conn, sql, args, func(rows pgx.Rows) error {
		for rows.Next() {
			t := &task{take: k}
			if err := rows.Scan(&t.id, &t.kind, &t.key, &t.payload, &t.priority, &t.runAt, &t.attempts,
				&t.takes, &t.maxAttempts, &t.retention, &t.delay, &seconds, &t.origin); err != nil {
				return err
			}
			if t.id == 0 {
				continue // nothing is due
			}
			t.handler = l.w.handlers[t.kind]
			t.lease = t.handler.options.Lease
			batch = append(batch, t)
		}
		return rows.Err()
	})
	return batch, time.Duration(seconds * float64(time.Second)), err
}

var errUnconfirmed = errors.New("no synchronous standby has confirmed the commit")

// priorities are those that a task may have, in the order in which they are taken.
var priorities = func() (all []int16) {
	for p := MaxPriority; p >= MinPriority; p-- {
		all = append(all, int16(p))
	}
	return all
}()

// texts are fences as a statement takes many.
func texts(fences []uuid.UUID) []string {
	all := make([]string, len(fences))
	for i, f := range fences {
		all[i] = f.String()
	}
	return all
}
