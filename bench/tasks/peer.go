package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// task is the payload of every task.
type task struct {
	ID int64 `json:"id"`
	At int64 `json:"at,omitempty"` // when it was enqueued, in Unix ns, if that matters
}

// Kind is the name of all tasks, where a subject asks for one.
func (task) Kind() string { return "bench" }

// place is what a subject's process is told first.
type place struct {
	Subject  string `json:"subject"`
	Database string `json:"database"`
	Redis    string `json:"redis,omitempty"`
	Pool     int    `json:"pool"`    // connections to PostgreSQL, at most
	Insert   bool   `json:"insert"`  // handlers insert a receipt; otherwise they do nothing
	Receipt  string `json:"receipt"` // by this statement
}

// peer is a queue as a program in Go uses it.
type peer interface {
	// migrate makes its tables.
	migrate(context.Context) error
	enqueue(context.Context, task) error
	// enqueueMany enqueues up to batch tasks in the best way that it has.
	enqueueMany(context.Context, []task) error
	// work runs h for tasks until stop is called, which returns when nothing runs.
	work(context.Context, *handler) (stop func() error, err error)
}

// opener makes a peer, which may use the pool.
type opener func(context.Context, *pgxpool.Pool, place) (peer, error)

// batch is how many tasks are enqueued at once where many are.
const batch = 1000

// handler is what every task comes to, and what is counted of it.
type handler struct {
	place
	pool *pgxpool.Pool
	seen *seen
}

// executor is a pool, or the transaction in which a subject runs a handler.
type executor interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// run is the whole handler.
func (h *handler) run(ctx context.Context, db executor, t task) error {
	now := time.Now().UnixNano()
	if h.Insert {
		if _, err := db.Exec(ctx, h.Receipt, t.ID); err != nil {
			return err
		}
	}
	h.seen.add(t, now)
	return nil
}
