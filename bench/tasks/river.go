package main

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverPeer is River.
type riverPeer struct {
	pool     *pgxpool.Pool
	client   *river.Client[pgx.Tx] // enqueues
	settings river.Config          // of the worker
	workers  int
	inTx     bool // complete tasks by JobCompleteTx, in the handler's transaction
}

// newRiver is River with the settings of its own benchmark.
func newRiver(inTx bool) opener {
	settings := river.Config{FetchCooldown: 2 * time.Millisecond, FetchPollInterval: 20 * time.Millisecond}
	return openRiver(riverPeer{settings: settings, workers: 2000, inTx: inTx})
}

// newRiverAsItComes is River with its defaults, which take 100 tasks each 100 ms at most.
func newRiverAsItComes() opener { return openRiver(riverPeer{workers: 100}) }

func openRiver(p riverPeer) opener {
	return func(_ context.Context, pool *pgxpool.Pool, _ place) (peer, error) {
		p.pool = pool
		p.settings.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
		var err error
		p.client, err = river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: p.settings.Logger})
		return &p, err
	}
}

func (p *riverPeer) migrate(ctx context.Context) error {
	migrator, err := rivermigrate.New(riverpgxv5.New(p.pool), nil)
	if err != nil {
		return err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

func (p *riverPeer) enqueue(ctx context.Context, t task) error {
	_, err := p.client.Insert(ctx, t, nil)
	return err
}

func (p *riverPeer) enqueueMany(ctx context.Context, tasks []task) error {
	many := make([]river.InsertManyParams, len(tasks))
	for i, t := range tasks {
		many[i].Args = t
	}
	_, err := p.client.InsertManyFast(ctx, many)
	return err
}

func (p *riverPeer) work(ctx context.Context, h *handler) (func() error, error) {
	settings := p.settings
	settings.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: p.workers}}
	settings.Workers = river.NewWorkers()
	river.AddWorker(settings.Workers, &riverWorker{handler: h, inTx: p.inTx})
	client, err := river.NewClient(riverpgxv5.New(p.pool), &settings)
	if err != nil {
		return nil, err
	}
	return func() error { return client.Stop(ctx) }, client.Start(ctx)
}

type riverWorker struct {
	river.WorkerDefaults[task]
	handler *handler
	inTx    bool
}

func (w *riverWorker) Work(ctx context.Context, job *river.Job[task]) error {
	if !w.inTx {
		return w.handler.run(ctx, w.handler.pool, job.Args)
	}
	return pgx.BeginFunc(ctx, w.handler.pool, func(tx pgx.Tx) error {
		if err := w.handler.run(ctx, tx, job.Args); err != nil {
			return err
		}
		_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
		return err
	})
}
