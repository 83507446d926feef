package queue

import (
	"context"
	"sync"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/execution"
	"github.com/idem-go/idem/internal/pgsql/tasks"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// wakeEvery is how often one process tells the workers of one queue at most: what is
	// enqueued meanwhile is told of once, at its end.
	wakeEvery = 5 * time.Millisecond
	// wakeLimit bounds one notification. A connection that has not answered by then is
	// closed, also if it is the caller's own.
	wakeLimit = 5 * time.Second
)

// Wake tells the workers of a queue that tasks are to be taken. Idem does so by itself
// after the transactions that it commits: a guarded request's, a task's, and an Enqueue on
// a pool. It is for the program's own, after their commit. It never runs inside a
// transaction, since a notification there makes all commits of the server wait for each
// other. A wake that is lost costs Config.Poll and nothing else, so it returns no error.
// Safe for concurrent use.
func Wake(ctx context.Context, db *idem.DB, queue string) { wakes.wake(db.Pool(), queue) }

// wakeAfter wakes the workers once what was enqueued is committed, if Idem knows when.
func wakeAfter(ctx context.Context, db Conn, queue string) {
	switch at := db.(type) {
	case *pgxpool.Pool:
		wakes.wake(at, queue)
	case *pgxpool.Conn:
		wakeAfter(ctx, at.Conn(), queue)
	case *pgx.Conn:
		if at.PgConn().TxStatus() == 'I' {
			// pgx closes a connection on which a context ends, and this one is the
			// caller's: the end of the caller's own must not come to that.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wakeLimit)
			defer cancel()
			_, _ = at.Exec(ctx, tasks.Wake, queue)
		}
	case interface{ Guarded() }:
		if x, ok := execution.From(ctx); ok {
			pool := x.Pool()
			x.AfterCommit(func(context.Context) { wakes.wake(pool, queue) })
		}
	}
}

// wakes are those of this process.
var wakes = waker{queues: make(map[wakeTo]*waking)}

// waker tells each queue at most once in wakeEvery: at once, and again at the end of that
// time if somebody has asked meanwhile.
type waker struct {
	mu     sync.Mutex
	queues map[wakeTo]*waking
}

type wakeTo struct {
	pool  *pgxpool.Pool
	queue string
}

// waking is a queue that was told within the last wakeEvery.
type waking struct{ again bool }

func (w *waker) wake(pool *pgxpool.Pool, queue string) {
	to := wakeTo{pool, queue}
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := w.queues[to]; now != nil {
		now.again = true
		return
	}
	w.queues[to] = &waking{}
	go w.tell(to)
}

// tell tells a queue, and goes on as long as somebody asks.
func (w *waker) tell(to wakeTo) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), wakeLimit)
		_, _ = to.pool.Exec(ctx, tasks.Wake, to.queue) // a worker that is not told polls
		cancel()
		time.Sleep(wakeEvery)
		w.mu.Lock()
		if !w.queues[to].again {
			delete(w.queues, to)
			w.mu.Unlock()
			return
		}
		w.queues[to].again = false
		w.mu.Unlock()
	}
}
