package claim

import (
	"context"
	"sync"
	"time"

	"github.com/idem-go/idem/internal/pgsql/keys"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// watchInterval is how often a process asks about the keys that are in
	// flight elsewhere, all of them in one statement.
	watchInterval = 20 * time.Millisecond
	// watchLimit bounds one such statement; one that fails is asked again.
	watchLimit = 2 * time.Second
)

// Watch tells when keys that are in flight in other processes are worth claiming
// again. However many are waited for, it uses one connection at a time, and none
// while nobody waits. It is safe for concurrent use; its zero value is not.
type Watch struct {
	pool *pgxpool.Pool

	mu      sync.Mutex
	watched map[*watched]struct{}
	running bool
}

type watched struct {
	scope, key string
	changed    chan struct{}
}

// NewWatch returns a watch on pool.
func NewWatch(pool *pgxpool.Pool) *Watch {
	return &Watch{pool: pool, watched: make(map[*watched]struct{})}
}

// Wait waits until key is worth claiming again, and reports whether that came
// before ctx ended.
func (w *Watch) Wait(ctx context.Context, scope, key string) bool {
	k := &watched{scope: scope, key: key, changed: make(chan struct{})}
	w.add(k)
	defer w.remove(k)
	select {
	case <-k.changed:
		return true
	case <-ctx.Done():
		return false
	}
}

// add starts the asking if nobody asks yet.
func (w *Watch) add(k *watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watched[k] = struct{}{}
	if !w.running {
		w.running = true
		go w.run()
	}
}

func (w *Watch) remove(k *watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.watched, k)
}

// run asks until nobody waits any more: the goroutine ends with its last waiter.
func (w *Watch) run() {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for range ticker.C {
		waiting := w.snapshot()
		if waiting == nil {
			return
		}
		for _, n := range w.ask(waiting) {
			k := waiting[n-1]
			w.remove(k)
			close(k.changed)
		}
	}
}

// snapshot is who waits now; nil ends the run.
func (w *Watch) snapshot() []*watched {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.watched) == 0 {
		w.running = false
		return nil
	}
	waiting := make([]*watched, 0, len(w.watched))
	for k := range w.watched {
		waiting = append(waiting, k)
	}
	return waiting
}

// ask returns the positions of those worth claiming again. A database that is
// away leaves everybody waiting until their own time is over.
func (w *Watch) ask(waiting []*watched) []int {
	ctx, cancel := context.WithTimeout(context.Background(), watchLimit)
	defer cancel()
	scopes, names, locks := make([]string, len(waiting)), make([]string, len(waiting)), make([]int64, len(waiting))
	for i, k := range waiting {
		scopes[i], names[i], locks[i] = k.scope, k.key, lockKey(k.scope, k.key)
	}
	rows, err := w.pool.Query(ctx, keys.Watch, scopes, names, locks)
	if err != nil {
		return nil
	}
	positions, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return nil
	}
	return positions
}
