package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/vgarvardt/gue/v5"
	"github.com/vgarvardt/gue/v5/adapter"
	"github.com/vgarvardt/gue/v5/adapter/pgxv5"
)

//go:embed sql/gue/schema.sql
var gueSchema string

// guePeer is gue, which runs each handler in the transaction that holds its task.
type guePeer struct {
	pool   *pgxpool.Pool
	client *gue.Client
}

// gueWorkers is how many it has; each holds a connection.
const gueWorkers = 100

func newGue(_ context.Context, pool *pgxpool.Pool, _ place) (peer, error) {
	client, err := gue.NewClient(pgxv5.NewConnPool(pool))
	return &guePeer{pool, client}, err
}

func (p *guePeer) migrate(ctx context.Context) error {
	_, err := p.pool.Exec(ctx, gueSchema, pgx.QueryExecModeSimpleProtocol)
	return err
}

func gueJob(t task) (*gue.Job, error) {
	args, err := json.Marshal(t)
	return &gue.Job{Type: t.Kind(), Args: args}, err
}

func (p *guePeer) enqueue(ctx context.Context, t task) error {
	job, err := gueJob(t)
	if err != nil {
		return err
	}
	return p.client.Enqueue(ctx, job)
}

func (p *guePeer) enqueueMany(ctx context.Context, tasks []task) (err error) {
	jobs := make([]*gue.Job, len(tasks))
	for i, t := range tasks {
		if jobs[i], err = gueJob(t); err != nil {
			return err
		}
	}
	return p.client.EnqueueBatch(ctx, jobs)
}

func (p *guePeer) work(ctx context.Context, h *handler) (func() error, error) {
	run := func(ctx context.Context, job *gue.Job) error {
		var t task
		if err := json.Unmarshal(job.Args, &t); err != nil {
			return err
		}
		return h.run(ctx, gueTx{job.Tx()}, t)
	}
	// The index of its table is in the order of this strategy, not of its default.
	workers, err := gue.NewWorkerPool(p.client, gue.WorkMap{task{}.Kind(): run}, gueWorkers,
		gue.WithPoolPollInterval(500*time.Millisecond), gue.WithPoolPollStrategy(gue.RunAtPollStrategy))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- workers.Run(ctx) }()
	return func() error { cancel(); return <-ended }, nil
}

// gueTx is the transaction of a job.
type gueTx struct{ tx adapter.Tx }

func (t gueTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	_, err := t.tx.Exec(ctx, sql, args...)
	return pgconn.CommandTag{}, err
}
