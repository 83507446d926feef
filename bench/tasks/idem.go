package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ourPeer is the library, with its defaults. What does nothing runs on a lease, what
// inserts a row runs in the transaction.
type ourPeer struct {
	pool   *pgxpool.Pool
	kind   *queue.Kind[task]
	keyed  bool
	watch  func() (idem.Config, error) // nil: it tells only of trouble
	config queue.Config
}

// manyAtOnce is how many handlers that do nothing but wait for the database's next batch run
// at once; docs/tasks.md says so. Those in the transaction have a connection each.
const manyAtOnce = 1000

// newForgetting keeps nothing of what is done, and its tasks have no key.
func newForgetting(config queue.Config) opener {
	return openOurs(queue.Options{Retention: queue.Forget}, ourPeer{config: config})
}

// newWatched is the same, watched in some way.
func newWatched(watch func() (idem.Config, error)) opener {
	return openOurs(queue.Options{Retention: queue.Forget}, ourPeer{watch: watch})
}

// newRetaining keeps finished tasks, and remembers the key of each.
func newRetaining() opener { return openOurs(queue.Options{}, ourPeer{keyed: true}) }

func openOurs(options queue.Options, p ourPeer) opener {
	return func(ctx context.Context, pool *pgxpool.Pool, _ place) (peer, error) {
		p.pool, p.kind = pool, queue.Define[task](task{}.Kind(), options)
		return &p, nil
	}
}

func (p *ourPeer) migrate(ctx context.Context) error {
	_, err := idem.Migrate(ctx, p.pool)
	return err
}

func (p *ourPeer) key(t task) string {
	if p.keyed {
		return "task:" + strconv.FormatInt(t.ID, 10)
	}
	return queue.Unkeyed
}

func (p *ourPeer) enqueue(ctx context.Context, t task) error {
	_, err := p.kind.Enqueue(ctx, p.pool, p.key(t), t)
	return err
}

func (p *ourPeer) enqueueMany(ctx context.Context, tasks []task) error {
	many := make([]queue.Task[task], len(tasks))
	for i, t := range tasks {
		many[i] = queue.Task[task]{Key: p.key(t), Payload: t}
	}
	_, err := p.kind.EnqueueMany(ctx, p.pool, many...)
	return err
}

func (p *ourPeer) work(ctx context.Context, h *handler) (func() error, error) {
	open := idem.Config{Observe: tellTrouble}
	if p.watch != nil {
		var err error
		if open, err = p.watch(); err != nil {
			return nil, err
		}
	}
	db, err := idem.Open(ctx, p.pool, open)
	if err != nil {
		return nil, err
	}
	config := p.config
	if !h.Insert {
		config.Concurrency = manyAtOnce
	}
	w := queue.NewWorker(db, config)
	if h.Insert {
		p.kind.Handle(w, func(ctx context.Context, tx pgx.Tx, t task) error { return h.run(ctx, tx, t) })
	} else {
		p.kind.HandleLeased(w, func(ctx context.Context, t task) error { return h.run(ctx, nil, t) })
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return func() error { cancel(); return <-ended }, nil
}

// tellTrouble tells what must not happen, whether or not a worker was killed.
func tellTrouble(_ context.Context, e idem.Event) {
	if e.Kind == idem.EventWorker || e.TaskResult == idem.TaskLeaseLost || e.TaskResult == idem.TaskFailed {
		fmt.Fprintf(os.Stderr, "%s idem: %v %v\n", time.Now().Format(time.TimeOnly), e.Kind, e.Err)
	}
}
