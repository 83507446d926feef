package queue_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// job is a task of these tests: what its handler does is said by Do.
type job struct {
	N  int    `json:"n"`
	Do string `json:"do,omitempty"`
}

// receipt is a task of a program's.
type receipt struct {
	Order int `json:"order"`
}

// floor is a database with a table that handlers write to, and what its workers tell.
type floor struct {
	t    testing.TB
	url  string
	pool *pgxpool.Pool
	db   *idem.DB

	mu     sync.Mutex
	events []idem.Event
}

func newFloor(t testing.TB) *floor {
	t.Helper()
	return newFloorAt(t, pgtest.NewURL(t))
}

func newFloorAt(t testing.TB, url string) *floor {
	t.Helper()
	f := &floor{t: t, url: url, pool: pgtest.Pool(t, url)}
	f.db = f.open(f.pool)
	f.exec("create table runs (n integer not null, by text not null default '')")
	return f
}

// open is a handle of which the floor sees the events.
func (f *floor) open(pool *pgxpool.Pool) *idem.DB {
	f.t.Helper()
	db, err := idem.Open(context.Background(), pool, idem.Config{Observe: f.observe})
	if err != nil {
		f.t.Fatal(err)
	}
	return db
}

func (f *floor) observe(_ context.Context, e idem.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, e)
}

// told counts the events of attempts that ended so.
func (f *floor) told(result idem.TaskResult) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.events {
		if e.Kind == idem.EventTask && e.TaskResult == result {
			n++
		}
	}
	return n
}

func (f *floor) exec(sql string, args ...any) {
	f.t.Helper()
	if _, err := f.pool.Exec(context.Background(), sql, args...); err != nil {
		f.t.Fatal(err)
	}
}

// valueOf is the one value of a query.
func valueOf[V any](f *floor, sql string, args ...any) (v V) {
	f.t.Helper()
	if err := f.pool.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		f.t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// wantCount fails unless a query counts so many.
func (f *floor) wantCount(want int, sql string, args ...any) {
	f.t.Helper()
	if got := valueOf[int](f, sql, args...); got != want {
		f.t.Errorf("%s: got %d, want %d", sql, got, want)
	}
}

// until waits for a condition.
func (f *floor) until(what string, limit time.Duration, so func() bool) {
	f.t.Helper()
	for deadline := time.Now().Add(limit); !so(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.t.Fatalf("waited %v: %s; the last of %d events: %v", limit, what, len(f.events), f.events[max(0, len(f.events)-5):])
		}
	}
}

// untilCount waits until a query counts so many.
func (f *floor) untilCount(want int, limit time.Duration, sql string, args ...any) {
	f.t.Helper()
	f.until(fmt.Sprintf("%s is %d", sql, want), limit, func() bool { return valueOf[int](f, sql, args...) == want })
}

// enqueue enqueues jobs.
func (f *floor) enqueue(k *queue.Kind[job], jobs ...job) []queue.Enqueued {
	f.t.Helper()
	all := make([]queue.Task[job], len(jobs))
	for i, j := range jobs {
		all[i] = queue.Task[job]{Key: queue.Unkeyed, Payload: j}
	}
	enqueued, err := k.EnqueueMany(context.Background(), f.pool, all...)
	if err != nil {
		f.t.Fatal(err)
	}
	return enqueued
}

// jobs are n that do the same.
func jobs(n int, do string) []job {
	all := make([]job, n)
	for i := range all {
		all[i] = job{N: i + 1, Do: do}
	}
	return all
}

// run runs a worker until the test ends, or stop is called, which returns what Run does.
func (f *floor) run(w *queue.Worker) (stop func() error) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	var err error
	ended.Go(func() { err = w.Run(ctx) })
	stop = func() error {
		cancel()
		ended.Wait()
		return err
	}
	f.t.Cleanup(func() { _ = stop() })
	return stop
}

// worker is one on the floor's pool that looks often.
func (f *floor) worker() *queue.Worker {
	return queue.NewWorker(f.db, queue.Config{Poll: 50 * time.Millisecond, Grace: 2 * time.Second})
}

// runs is a handler that writes its row.
func runs(ctx context.Context, tx pgx.Tx, j job) error {
	_, err := tx.Exec(ctx, "insert into runs (n) values ($1)", j.N)
	return err
}

// gate is where handlers wait until the test lets them go on, or their contexts end.
type gate struct {
	entered chan int
	open    chan struct{}
}

func newGate() *gate { return &gate{entered: make(chan int, 1000), open: make(chan struct{})} }

// wait is what a handler calls.
func (g *gate) wait(ctx context.Context, n int) error {
	g.entered <- n
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// await waits until so many handlers are at the gate.
func (g *gate) await(t testing.TB, n int) {
	t.Helper()
	for range n {
		select {
		case <-g.entered:
		case <-time.After(20 * time.Second):
			t.Fatal("the handlers do not come")
		}
	}
}
