package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgsql/tasks"
	"github.com/idem-go/idem/internal/sqlstate"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// lockLimit bounds how long a statement of a task waits for a lock.
	lockLimit = 5 * time.Second
	// idleSlack is what the server waits beyond the handler's time before it ends a
	// transaction of which nothing is heard any more.
	idleSlack = 5 * time.Second
	// commitLimit bounds the end of a transaction.
	commitLimit = 10 * time.Second
	// strayLimit is how long the end of a handler waits for goroutines that it has left
	// behind on its transaction.
	strayLimit = time.Second
	// maxBegins is on how many connections a transaction is begun that turn out to be dead.
	maxBegins = 3
)

// transaction is what the handler's transaction and its savepoints share. It is begun by
// its first statement, in one round trip with that, and takes a connection no sooner.
type transaction struct {
	a    *attempt
	mark string // which the transaction carries to its end, and no other does

	mu      sync.Mutex
	active  int
	closed  bool
	idle    chan struct{}
	pooled  *pgxpool.Conn // whoever takes it away ends it
	over    bool          // the handler has ended it by SQL of its own
	starved bool          // it got no connection in the time that there was
	failure error         // the first failure of a statement that may be run again, or is the server's

	opened   atomic.Bool
	conn     *pgx.Conn // for calls, which may outlast the handler
	inner    pgx.Tx
	reading  interface{ end() } // rows that may be open
	unopened error              // why it could not be begun
	refused  error              // the handler has called Commit or Rollback
	held     bool               // the task is held to the end of it (see run.Hold)
	exposed  bool               // the handler has the connection itself
}

// tx is the handler's transaction, or a savepoint in it: pgx's own, without the right to
// end the transaction.
type tx struct {
	*transaction
	inTx   pgx.Tx // of a savepoint
	nested bool
}

func newTx(a *attempt) *tx {
	return &tx{transaction: &transaction{a: a, mark: uuid.NewString()}}
}

// Guarded says that the worker ends the transaction, and looks at what is left of it
// first. Whoever meets a failure need not, and must not take the connection for that.
func (t *tx) Guarded() {}

// enter begins a call on the connection. It ends with exit.
func (t *transaction) enter() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.over {
		return pgx.ErrTxClosed
	}
	t.active++
	return nil
}

func (t *transaction) exit() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.active--
	if t.active == 0 && t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
}

// shut lets no further call on the connection.
func (t *transaction) shut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
}

// close lets no further call on the connection, and waits a while for those that are.
func (t *transaction) close() bool {
	t.shut()
	t.mu.Lock()
	if t.active == 0 {
		t.mu.Unlock()
		return true
	}
	idle := make(chan struct{})
	t.idle = idle
	t.mu.Unlock()
	timer := time.NewTimer(strayLimit)
	defer timer.Stop()
	select {
	case <-idle:
		return true
	case <-timer.C:
		return false
	}
}

func (t *transaction) begun() bool { return t.opened.Load() }

// opening is the batch that begins the transaction.
func (t *transaction) opening() *pgx.Batch {
	task, limit := t.a.task, t.a.task.handler.options.Timeout
	b := &pgx.Batch{}
	b.BeginTx(pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	b.Queue(tasks.Begin, milliseconds(limit), milliseconds(lockLimit), milliseconds(limit+idleSlack), t.mark)
	if task.handler.leased {
		b.Queue(tasks.Fence, task.take.queue, task.id, task.take.fence)
	}
	return b
}

// open begins the transaction together with what queue adds. It returns the results, to be
// read from what was added on and then closed; nil if there is none, or if it has still to
// be run, in the transaction that is now open. If it fails, nothing is open.
func (t *transaction) open(ctx context.Context, queue func(*pgx.Batch)) (results pgx.BatchResults, err error) {
	for try := 1; ; try++ {
		if err = t.acquire(ctx); err != nil {
			break
		}
		results, err = t.begin(ctx, queue)
		dead := t.conn.IsClosed()
		if err != nil && !dead {
			_ = t.undo(ctx) // or the pool sees what is left
			if queue != nil && !errors.Is(err, idem.ErrLeaseLost) {
				// A statement that cannot be prepared takes the beginning with it.
				results, err = t.begin(ctx, nil)
			}
		}
		if err == nil {
			t.unopened = nil
			t.opened.Store(true)
			return results, nil
		}
		t.release()
		if !dead || try == maxBegins || ctx.Err() != nil { // dead: from before; nothing was committed on it
			break
		}
	}
	t.unopened = err
	if errors.Is(err, idem.ErrLeaseLost) {
		t.a.lose()
	}
	return nil, err
}

// acquire takes a connection, unless the handler was given up meanwhile.
func (t *transaction) acquire(ctx context.Context) error {
	pooled, err := t.a.w.db.Pool().Acquire(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.starved = err != nil && ctx.Err() != nil
	switch {
	case t.starved:
		return fmt.Errorf("%w: begin: %w: %w", idem.ErrUnavailable, errStarved, err)
	case err != nil:
		return fmt.Errorf("%w: begin: %w", idem.ErrUnavailable, err)
	}
	if t.closed {
		pooled.Release()
		return pgx.ErrTxClosed
	}
	t.pooled, t.conn = pooled, pooled.Conn()
	return nil
}

var errStarved = errors.New("no connection of the pool was to be had in time; raise its MaxConns, or lower queue.Config.Concurrency")

// hasStarved reports whether the transaction was wanted and got no connection in its time.
func (t *transaction) hasStarved() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.starved
}

func (t *transaction) begin(ctx context.Context, queue func(*pgx.Batch)) (pgx.BatchResults, error) {
	b := t.opening()
	if queue != nil {
		queue(b)
	}
	results := t.conn.SendBatch(ctx, b)
	t.inner = results.Tx()
	err := func() error {
		for range 2 {
			if _, err := results.Exec(); err != nil {
				return err
			}
		}
		if !t.a.task.handler.leased {
			return nil
		}
		tag, err := results.Exec()
		if err == nil && tag.RowsAffected() != 1 {
			err = idem.ErrLeaseLost
		}
		return err
	}()
	if err != nil || queue == nil {
		return nil, errors.Join(err, results.Close())
	}
	return results, nil
}

// ready begins the transaction ahead of what cannot travel with its beginning.
func (t *transaction) ready(ctx context.Context) error {
	if t.begun() {
		return nil
	}
	_, err := t.open(ctx, nil)
	t.saw(err)
	return err
}

// saw notes how a statement ended, within its call.
func (t *transaction) saw(err error) {
	over := t.begun() && !t.conn.IsClosed() && t.conn.PgConn().TxStatus() == 'I'
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = t.over || over
	if t.failure == nil && (sqlstate.Transient(err) || sqlstate.Fatal(err) && sqlstate.Code(err) != "") {
		t.failure = err
	}
}

// failed is the first failure of a statement that may be run again, or is the server's.
func (t *transaction) failed() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failure
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
