package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/hibiken/asynq"
	"github.com/jackc/pgx/v5/pgxpool"
)

// asynqPeer is asynq, which keeps its tasks in Redis.
type asynqPeer struct {
	redis  asynq.RedisClientOpt
	client *asynq.Client
}

const (
	asynqWorkers = 100
	// asynqBatchers enqueue at once where many tasks are enqueued, since it has no call
	// for that.
	asynqBatchers = 32
)

func newAsynq(_ context.Context, _ *pgxpool.Pool, p place) (peer, error) {
	redis := asynq.RedisClientOpt{Addr: p.Redis}
	return &asynqPeer{redis, asynq.NewClient(redis)}, nil
}

func (p *asynqPeer) migrate(context.Context) error { return nil }

func (p *asynqPeer) enqueue(ctx context.Context, t task) error {
	payload, err := json.Marshal(t)
	if err != nil {
		return err
	}
	_, err = p.client.EnqueueContext(ctx, asynq.NewTask(t.Kind(), payload))
	return err
}

func (p *asynqPeer) enqueueMany(ctx context.Context, tasks []task) error {
	return inParallel(ctx, asynqBatchers, len(tasks), func(ctx context.Context, i int) error {
		return p.enqueue(ctx, tasks[i-1])
	})
}

func (p *asynqPeer) work(_ context.Context, h *handler) (func() error, error) {
	server := asynq.NewServer(p.redis, asynq.Config{
		Concurrency: asynqWorkers, LogLevel: asynq.FatalLevel,
		TaskCheckInterval: 10 * time.Millisecond, // by default an idle queue is looked at each second
		// For what a dead worker leaves: try it again at once.
		RetryDelayFunc:           func(int, error, *asynq.Task) time.Duration { return 0 },
		DelayedTaskCheckInterval: time.Second,
	})
	run := func(ctx context.Context, job *asynq.Task) error {
		var t task
		if err := json.Unmarshal(job.Payload(), &t); err != nil {
			return err
		}
		return h.run(ctx, h.pool, t)
	}
	return func() error { server.Shutdown(); return nil }, server.Start(asynq.HandlerFunc(run))
}
