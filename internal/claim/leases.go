package claim

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/idem-go/idem/internal/pgsql/keys"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// renewals is how often a lease is renewed before it would be over: two may be
	// lost.
	renewals = 3
	// renewLimit bounds one renewal, beside the interval of renewals; one that fails is
	// done again at once.
	renewLimit = 5 * time.Second
	renewPause = 100 * time.Millisecond
)

// Leases are a process's claims on a lease. They are renewed by one statement at a
// time, on a connection of their own beside the pool, so that a pool without a free
// connection costs no lease. It is opened for the first renewal and closed with the
// last lease. Safe for concurrent use; the zero value is not.
type Leases struct {
	pool *pgxpool.Pool

	mu       sync.Mutex
	held     map[*Lease]struct{}
	interval time.Duration // how soon the leases have to be renewed; zero while none is held
	changed  chan struct{} // closed and made anew when interval changes
	running  bool
}

// NewLeases returns the leases of a process on pool.
func NewLeases(pool *pgxpool.Pool) *Leases {
	return &Leases{pool: pool, held: make(map[*Lease]struct{}), changed: make(chan struct{})}
}

// add renews l from now on.
func (ls *Leases) add(l *Lease) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.held[l] = struct{}{}
	each := l.intent.Lease / renewals
	if ls.interval == 0 || each < ls.interval {
		ls.change(each)
	}
	if !ls.running {
		ls.running = true
		go ls.run()
	}
}

// remove renews l no more.
func (ls *Leases) remove(l *Lease) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if _, held := ls.held[l]; !held {
		return
	}
	delete(ls.held, l)
	if len(ls.held) == 0 {
		ls.change(0)
	}
}

func (ls *Leases) change(interval time.Duration) {
	ls.interval = interval
	close(ls.changed)
	ls.changed = make(chan struct{})
}

// run renews until no lease is held: the goroutine, and its connection, end with the
// last one.
func (ls *Leases) run() {
	var conn *pgx.Conn
	defer func() { closeQuietly(conn) }()
	pause := time.Duration(0) // instead of the interval, after a renewal that failed
	for {
		interval, changed := ls.next()
		if interval == 0 {
			return
		}
		timer := time.NewTimer(cmp.Or(pause, interval))
		select {
		case <-changed:
			timer.Stop()
			continue
		case <-timer.C:
		}
		pause = 0
		if conn = ls.renew(conn, min(renewLimit, interval)); conn == nil { // the database may be on its way back
			pause = renewPause
		}
	}
}

// next is how soon the leases have to be renewed, and a channel that is closed when
// that changes. Zero ends the run.
func (ls *Leases) next() (time.Duration, <-chan struct{}) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.running = ls.interval > 0
	return ls.interval, ls.changed
}

// renew renews all leases on conn, or on a new connection, and tells those that were
// lost. It returns the connection for the next time; nil if this one has failed.
func (ls *Leases) renew(conn *pgx.Conn, limit time.Duration) *pgx.Conn {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	held := ls.snapshot()
	if len(held) == 0 {
		return conn
	}
	if conn == nil {
		var err error
		if conn, err = ls.connect(ctx); err != nil {
			return nil
		}
	}
	lost, err := renewed(ctx, conn, held)
	if err != nil {
		closeQuietly(conn)
		return nil
	}
	for _, n := range lost {
		held[n-1].Lose()
	}
	return conn
}

// renewed renews held and returns the positions, from 1, of those that were lost.
func renewed(ctx context.Context, conn *pgx.Conn, held []*Lease) ([]int, error) {
	n := len(held)
	scopes, names, fences := make([]string, n), make([]string, n), make([]string, n)
	leases, ttls := make([]float64, n), make([]float64, n)
	for i, l := range held {
		scopes[i], names[i], fences[i] = l.intent.Scope, l.intent.Key, l.fence.String()
		leases[i], ttls[i] = l.intent.Lease.Seconds(), l.intent.TTL.Seconds()
	}
	rows, err := conn.Query(ctx, keys.Renew, scopes, names, fences, leases, ttls)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int])
}

func (ls *Leases) snapshot() []*Lease {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	held := make([]*Lease, 0, len(ls.held))
	for l := range ls.held {
		held = append(held, l)
	}
	return held
}

// connect opens a connection as the pool would.
func (ls *Leases) connect(ctx context.Context) (*pgx.Conn, error) {
	config := ls.pool.Config()
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
