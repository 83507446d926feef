package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgsql/tasks"
	sqltx "github.com/idem-go/idem/internal/pgsql/tx"
	"github.com/idem-go/idem/internal/sqlstate"
	"github.com/idem-go/idem/internal/standby"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// divisionByZero is what the last statement of a transaction fails with that must not be
// committed.
const divisionByZero = "22012"

// abandonLimit bounds the request to cancel what a handler still does that was given up.
const abandonLimit = time.Second

var (
	errEnded   = Fail(errors.New("the handler has ended its transaction itself, and what it had written may be committed; it must return instead"))
	errStayed  = errors.New("the handler has returned and still uses its transaction")
	errRefused = errors.New("the commit was refused")
	errUnknown = errors.New("whether the transaction was committed could not be learnt")
	errNotYet  = errors.New("the connection was lost before the commit")
)

// commit commits the handler's writes together with the end of the task, and reports
// whether there were any: without a transaction there is nothing to be committed. Its
// error says that neither is there, unless it wraps errUnknown.
func (t *transaction) commit(base context.Context) (written bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(base), commitLimit)
	defer cancel()
	if !t.close() {
		t.abandon()
		return false, errStayed
	}
	defer t.release()
	switch {
	case t.refused != nil && !t.over:
		return false, errors.Join(t.refused, t.undo(ctx))
	case !t.begun():
		return false, t.unopened // which the handler may have swallowed
	}
	t.endReading()
	switch {
	case t.over:
		return false, errEnded
	case t.conn.IsClosed():
		return false, fmt.Errorf("%w: the connection was lost: %w", idem.ErrUnavailable, orUnknown(t.failure))
	case t.conn.PgConn().TxStatus() == 'I':
		return false, errEnded
	case t.conn.PgConn().TxStatus() == 'E':
		return false, errors.Join(fmt.Errorf("the handler has returned nil in an aborted transaction: %w", orUnknown(t.failure)), t.undo(ctx))
	}
	lost, err := t.send(ctx)
	if lost {
		err = t.readBack(base, err)
	}
	return true, err
}

func orUnknown(err error) error {
	if err == nil {
		return errors.New("by a statement that was not seen")
	}
	return err
}

// send sends the end of the task and COMMIT in one round trip. An error of the first
// skips the second. lost says that the connection is, and the reply with it.
func (t *transaction) send(ctx context.Context) (lost bool, err error) {
	task, conn := t.a.task, t.conn
	sql := tasks.Done
	if task.forgets() {
		sql = tasks.Forget
	}
	b := &pgx.Batch{}
	b.Queue(sql, task.take.queue, task.id, pgtype.UUID{Bytes: task.take.fence, Valid: true}, t.mark)
	b.Queue(sqltx.Commit)
	standby.Warned(conn.PgConn()) // of what went before
	results := conn.SendBatch(ctx, b)
	_, doneErr := results.Exec()
	tag, commitErr := results.Exec()
	err = errors.Join(doneErr, commitErr, results.Close())
	switch {
	case sqlstate.Code(doneErr) == divisionByZero:
		return false, t.refusal(ctx)
	case doneErr != nil && !sqlstate.Fatal(doneErr):
		return false, errors.Join(doneErr, t.undo(ctx))
	case sqlstate.Fatal(err):
		t.a.unheard = sqlstate.Code(doneErr) == "" // or the server says that it did not come to the COMMIT
		return true, err
	case err != nil:
		return false, fmt.Errorf("%w: %w", errRefused, err)
	case tag.String() != "COMMIT":
		return false, errRefused
	case standby.Warned(conn.PgConn()):
		t.a.w.trouble(ctx, task.take.queue, "finish a task", errUnconfirmed) // it is committed here
	}
	return false, nil
}

// refusal says why the end of the task was refused.
func (t *transaction) refusal(ctx context.Context) error {
	if err := t.undo(ctx); err != nil {
		return err
	}
	t.release() // before another is asked for
	if s, err := t.a.look(ctx, tasks.Look); err == nil && s.held() {
		return errEnded // and began another
	}
	return idem.ErrLeaseLost
}

// undo rolls the transaction back, if there is one.
func (t *transaction) undo(ctx context.Context) error {
	if !t.has() || t.conn.IsClosed() {
		return nil
	}
	t.endReading()
	if _, err := t.conn.Exec(ctx, sqltx.Rollback); err != nil {
		return fmt.Errorf("%w: roll back: %w", idem.ErrUnavailable, err)
	}
	return nil
}

// readBack learns whether a COMMIT took effect whose reply was lost. From the end of the
// task on the transaction holds its row: whoever can lock it knows that it is over, and the
// row says how, unless the server has not come to that end yet (errNotYet). Then whoever
// writes the row first has it.
func (t *transaction) readBack(ctx context.Context, cause error) error {
	t.release()
	ctx, cancel := context.WithTimeout(ctx, t.a.task.lease)
	defer cancel()
	for {
		s, err := t.a.look(ctx, tasks.Look)
		switch {
		case err != nil: // the database may be on its way back
		case t.a.finished(s):
			return nil
		case s.held():
			return fmt.Errorf("%w: %w: %w", idem.ErrUnavailable, errNotYet, cause)
		default:
			return errors.Join(idem.ErrLeaseLost, cause)
		}
		if !pause(ctx, finishPause) {
			return errors.Join(errUnknown, cause, err)
		}
	}
}

// rollback ends the transaction without its writes.
func (t *transaction) rollback(ctx context.Context) {
	if !t.close() {
		t.abandon()
		return
	}
	defer t.release()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitLimit)
	defer cancel()
	_ = t.undo(ctx) // a failure leaves the status that the pool looks at
}

// release gives the connection back. The pool closes one that is still in a transaction.
func (t *transaction) release() {
	pooled := t.away()
	switch {
	case pooled == nil:
	case t.exposed:
		closeQuietly(pooled.Hijack())
	default:
		pooled.Release()
	}
}

// has reports whether there is a connection.
func (t *transaction) has() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pooled != nil
}

// away takes the connection from whoever else might end it.
func (t *transaction) away() *pgxpool.Conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	pooled := t.pooled
	t.pooled = nil
	return pooled
}

// abandon closes the connection under a handler that still uses it, which rolls
// everything back.
func (t *transaction) abandon() {
	t.shut()
	pooled := t.away()
	if pooled == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), abandonLimit)
	defer cancel()
	conn := pooled.Hijack().PgConn()
	_ = conn.CancelRequest(ctx) // a backend in a statement does not notice that its client is gone
	_ = conn.Conn().Close()
}
