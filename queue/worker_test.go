package queue_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
)

// What is wrong with a worker is told by Run, before it takes anything.
func TestWorker_whatIsWrongWithIt(t *testing.T) {
	f := newFloor(t)
	kind := queue.Define[job]("job", queue.Options{})
	f.enqueue(kind, job{N: 1})
	for what, c := range map[string]struct {
		db     *idem.DB
		config queue.Config
		handle func(*queue.Worker)
		says   string
	}{
		"no handler":        {f.db, queue.Config{}, func(*queue.Worker) {}, "give it some with Kind.Handle"},
		"a nil handler":     {f.db, queue.Config{}, func(w *queue.Worker) { kind.Handle(w, nil) }, "the handler is nil"},
		"a nil one leased":  {f.db, queue.Config{}, func(w *queue.Worker) { kind.HandleLeased(w, nil) }, "the handler is nil"},
		"two handlers":      {f.db, queue.Config{}, func(w *queue.Worker) { kind.Handle(w, runs); kind.Handle(w, runs) }, "has two handlers"},
		"one of each way":   {f.db, queue.Config{}, handledBothWays(kind), "has two handlers"},
		"no database":       {nil, queue.Config{}, func(w *queue.Worker) { kind.Handle(w, runs) }, "open it with idem.Open"},
		"negative":          {f.db, queue.Config{Concurrency: -1}, func(w *queue.Worker) { kind.Handle(w, runs) }, "Config.Concurrency is -1"},
		"beyond all bounds": {f.db, queue.Config{Concurrency: math.MaxInt}, func(w *queue.Worker) { kind.Handle(w, runs) }, "may be 1 to 100000"},
		"none of a queue":   {f.db, queue.Config{Queues: map[string]int{"default": 0}}, func(w *queue.Worker) { kind.Handle(w, runs) }, `Config.Queues["default"] is 0`},
		"a negative pause":  {f.db, queue.Config{Poll: -time.Second}, func(w *queue.Worker) { kind.Handle(w, runs) }, "Config.Poll is -1s"},
	} {
		w := queue.NewWorker(c.db, c.config)
		c.handle(w)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		err := w.Run(ctx)
		cancel()
		if !errors.Is(err, queue.ErrWorkerInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want ErrWorkerInvalid that says %q", what, err, c.says)
		}
	}
	f.wantCount(1, "select count(*) from idem.tasks where status = 'pending' and takes = 0")
}

func handledBothWays(kind *queue.Kind[job]) func(*queue.Worker) {
	return func(w *queue.Worker) {
		kind.Handle(w, func(context.Context, pgx.Tx, job) error { return nil })
		kind.HandleLeased(w, func(context.Context, job) error { return nil })
	}
}
