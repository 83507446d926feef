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

// A queue of Config.Queues that is not there may be misspelt, or another program's.
func TestWorker_tellsOfQueuesThatItHasNoHandlerFor(t *testing.T) {
	for name, c := range map[string]struct {
		queues map[string]int
		says   string // nothing: it is silent
	}{
		"one that is handled": {map[string]int{"mail": 2}, ""},
		"one is misspelt":     {map[string]int{"mial": 2}, `["mial"], which changes nothing here; it has handlers for ["default" "mail"]`},
		"several":             {map[string]int{"mail": 2, "z": 1, "a": 1}, `["a" "z"]`},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFloor(t)
			w := queue.NewWorker(f.db, queue.Config{Queues: c.queues, Poll: 50 * time.Millisecond, Concurrency: 1})
			kind := queue.Define[job]("job", queue.Options{})
			kind.Handle(w, runs)
			queue.Define[job]("mail.send", queue.Options{Queue: "mail"}).Handle(w, runs)
			f.enqueue(kind, job{N: 1})
			stop := f.run(w)
			f.untilCount(1, 10*time.Second, "select count(*) from idem.tasks where status = 'done'")
			if err := stop(); err != nil {
				t.Error(err)
			}
			if n, want := f.troubled("Config.Queues"), min(len(c.says), 1); n != want {
				t.Errorf("it is told %d times, want %d", n, want)
			}
			if c.says != "" && f.troubled(c.says) != 1 {
				t.Errorf("it is not told that %s: %v", c.says, f.events)
			}
		})
	}
}

func handledBothWays(kind *queue.Kind[job]) func(*queue.Worker) {
	return func(w *queue.Worker) {
		kind.Handle(w, func(context.Context, pgx.Tx, job) error { return nil })
		kind.HandleLeased(w, func(context.Context, job) error { return nil })
	}
}
