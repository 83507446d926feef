package idemtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// takenLimit bounds the wait until a worker takes a task that it can take. It does
	// at once.
	takenLimit = 5 * time.Second
	// attemptLimit bounds one attempt, and the end of a worker: longer than a worker's
	// usual grace.
	attemptLimit = time.Minute
	// watchPause is how often is looked at a task.
	watchPause = 3 * time.Millisecond
)

// hired is a worker of the program's, for one task.
type hired struct {
	worker  *queue.Worker
	pool    *pgxpool.Pool
	only    *only
	ctx     context.Context // Run's
	cancel  context.CancelFunc
	started bool
	gone    chan struct{} // closed when Run has returned
	err     error         // of Run
}

// hire makes a worker on a pool of its own. It begins with start, and ends with end.
func hire(ctx context.Context, config *pgxpool.Config, newWorker NewWorker, only *only) (*hired, error) {
	config.ConnConfig.Tracer = only
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	w := &hired{pool: pool, only: only, gone: make(chan struct{})}
	w.ctx, w.cancel = context.WithCancel(ctx)
	if w.worker, err = newWorker(w.ctx, pool); err == nil && w.worker == nil {
		err = errors.New("it returned no worker")
	}
	if err != nil {
		w.cancel()
		return nil, errors.Join(fmt.Errorf("the worker: %w", err), closePool(pool))
	}
	return w, nil
}

// hireAt is hire on the database of url.
func hireAt(ctx context.Context, url string, newWorker NewWorker, only *only) (*hired, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	idem.Prepare(config)
	return hire(ctx, config, newWorker, only)
}

func (w *hired) start() {
	w.started = true
	go func() {
		w.err = w.worker.Run(w.ctx)
		close(w.gone)
	}()
}

// end has the worker end, once its handler has returned, and waits for that.
func (w *hired) end() error {
	w.cancel()
	if !w.started {
		return closePool(w.pool)
	}
	limit := time.NewTimer(attemptLimit)
	defer limit.Stop()
	select {
	case <-w.gone:
		return errors.Join(w.err, closePool(w.pool))
	case <-limit.C:
		return fmt.Errorf("the worker has not ended within %v", attemptLimit)
	}
}

// await waits until an attempt at the task has ended, and says where the task stands.
func (w *hired) await(ctx context.Context) (now task, err error) {
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	taken := time.NewTimer(takenLimit)
	defer taken.Stop()
	tick := time.NewTicker(watchPause)
	defer tick.Stop()
	before := w.only.task
	for {
		select {
		case <-tick.C:
		case <-taken.C:
			if now.takes == before.takes {
				return now, w.untaken()
			}
		case <-w.gone:
			return now, errors.New("the worker has ended by itself") // end says why
		case <-ctx.Done():
			return now, fmt.Errorf("%w: the attempt has not ended; the task is %s", ctx.Err(), now.status)
		}
		if now, err = taskByID(ctx, w.only.pool, before.id); err != nil || now.over(before) {
			return now, err
		}
	}
}

// untaken is why a worker does not take the task.
func (w *hired) untaken() error {
	switch t := w.only.task; {
	case !w.only.asked.Load():
		return errors.New("the worker has taken nothing: does it use the pool that it gets?")
	case !w.only.handled.Load():
		return fmt.Errorf("the worker has no handler for the kind %s in the queue %s", t.kind, t.queue)
	default:
		return fmt.Errorf("the worker has not taken task %d within %v", t.id, takenLimit)
	}
}
