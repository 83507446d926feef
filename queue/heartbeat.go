package queue

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgsql/tasks"
	"github.com/jackc/pgx/v5"
)

const (
	// renewals is how often a lease is renewed before it would be over: two may be lost.
	renewals = 3
	// renewLimit bounds one renewal; one that fails is made again after renewPause, or a
	// quarter of the time between two.
	renewLimit = 5 * time.Second
	renewPause = time.Second
)

// heartbeat renews the leases of all tasks that a worker has, by one statement at a time,
// on a connection of its own beside the pool, so that a pool without a free connection
// costs no lease.
type heartbeat struct {
	w    *Worker
	kick chan struct{} // renew now

	mu   sync.Mutex
	held map[*task]*attempt // what the worker has; nil is a task that waits to be started
}

func newHeartbeat(w *Worker) *heartbeat {
	return &heartbeat{w: w, kick: make(chan struct{}, 1), held: make(map[*task]*attempt)}
}

// hold renews the leases of what was taken from now on. Their time began with the take: of
// one that was slow they are renewed at once.
func (b *heartbeat) hold(batch []*task, age time.Duration) {
	if len(batch) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range batch {
		b.held[t] = nil
	}
	if age > b.interval() {
		signal(b.kick)
	}
}

// attach says which attempt is to be told when the lease of its task is lost, or its
// cancellation asked for; also if that is known already.
func (b *heartbeat) attach(a *attempt) {
	b.mu.Lock()
	if _, held := b.held[a.task]; held {
		b.held[a.task] = a
	}
	b.mu.Unlock()
	switch {
	case a.task.lost.Load():
		a.stop(idem.ErrLeaseLost)
	case a.task.unwanted.Load():
		a.stop(ErrCancelled)
	}
}

// release renews the lease of t no more.
func (b *heartbeat) release(t *task) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.held, t)
}

// abandon leaves tasks whose end could not be recorded to whoever looks for those of dead
// workers: it looks at takes, so theirs is renewed no more, though others of it are.
func (b *heartbeat) abandon(all ...*task) {
	for _, t := range all {
		t.take.broken.Store(true)
	}
}

// interval is how often the worker's leases have to be renewed.
func (b *heartbeat) interval() time.Duration {
	shortest := MaxLease
	for _, h := range b.w.handlers {
		shortest = min(shortest, h.options.Lease)
	}
	return shortest / renewals
}

// run renews until ctx ends.
func (b *heartbeat) run(ctx context.Context) {
	var conn *pgx.Conn
	defer func() { closeQuietly(conn) }()
	timer := time.NewTimer(b.interval())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.kick:
		case <-timer.C:
		}
		next := b.interval()
		if conn = b.renew(ctx, conn); conn == nil {
			next = min(renewPause, next/4) // the database may be on its way back
		}
		timer.Reset(next)
	}
}

// renew renews all that the worker has, on conn or on a new connection, and tells the
// attempts that have to know. It returns the connection for the next time.
func (b *heartbeat) renew(ctx context.Context, conn *pgx.Conn) *pgx.Conn {
	if conn == nil {
		// It may take longer than a renewal: one that is given up is begun anew, and on a
		// busy server would never come to its end.
		connecting, cancel := context.WithTimeout(ctx, renewLimit)
		defer cancel()
		var err error
		if conn, err = connect(connecting, b.w.db); err != nil {
			b.w.trouble(ctx, "", "connect to renew leases", err)
			return nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, min(renewLimit, b.interval()))
	defer cancel()
	all := b.all()
	if len(all) == 0 {
		return conn
	}
	if err := b.renewed(ctx, conn, all); err != nil {
		b.w.trouble(ctx, "", "renew leases", err)
		closeQuietly(conn)
		return nil
	}
	return conn
}

// all are the tasks that the worker has, the newest among them: by the next time two
// thirds of their leases may be over.
func (b *heartbeat) all() []*task {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.held))
}

func (b *heartbeat) renewed(ctx context.Context, conn *pgx.Conn, all []*task) error {
	queues, ids, fences := columns(all)
	leases, whole := make([]float64, len(all)), make([]bool, len(all))
	for i, t := range all {
		leases[i], whole[i] = t.lease.Seconds(), !t.take.broken.Load()
	}
	return byIndex(ctx, conn, tasks.Renew, []any{queues, ids, fences, leases, whole}, func(rows pgx.Rows) error {
		var n int
		var lost bool
		_, err := pgx.ForEachRow(rows, []any{&n, &lost}, func() error {
			b.tell(all[n-1], lost)
			return nil
		})
		return err
	})
}

// tell tells the attempt at a task that its lease is lost, or its cancellation asked for.
func (b *heartbeat) tell(t *task, lost bool) {
	b.mu.Lock()
	a, held := b.held[t]
	if !held { // it has ended meanwhile
		b.mu.Unlock()
		return
	}
	why := ErrCancelled
	if lost {
		why = idem.ErrLeaseLost
		t.lost.Store(true)
	} else {
		t.unwanted.Store(true)
	}
	b.mu.Unlock()
	if a != nil {
		a.stop(why)
	}
}

// connect opens a connection as the pool would.
func connect(ctx context.Context, db *idem.DB) (*pgx.Conn, error) {
	config := db.Pool().Config()
	if config.BeforeConnect != nil {
		if err := config.BeforeConnect(ctx, config.ConnConfig); err != nil {
			return nil, err
		}
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil || config.AfterConnect == nil {
		return conn, err
	}
	if err := config.AfterConnect(ctx, conn); err != nil {
		closeQuietly(conn)
		return nil, err
	}
	return conn, nil
}

func closeQuietly(conn *pgx.Conn) {
	if conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}
