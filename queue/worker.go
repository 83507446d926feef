package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/idem-go/idem"
)

const (
	// DefaultConcurrency is how many handlers of one queue run at once in a worker.
	DefaultConcurrency = 32
	// MaxConcurrency bounds that.
	MaxConcurrency = 100_000
	// DefaultPoll is how often an idle worker looks for tasks that nobody has woken it
	// for, at the latest.
	DefaultPoll = time.Second
	// DefaultGrace is how long running handlers may go on when the worker shuts down.
	DefaultGrace = 25 * time.Second
)

// Config says how a worker works. The zero value works.
type Config struct {
	// Concurrency is how many handlers of each queue run at once, MaxConcurrency at most. 0
	// means DefaultConcurrency. One that has not returned a second after its context has
	// ended is left behind and does not count any more. A handler in the transaction holds a connection of the pool from
	// its first statement to its end: the pool's MaxConns should be above the sum of all
	// queues, or handlers wait. One that waits in vain is put off, at no cost of attempts.
	Concurrency int
	// Queues says it for some queues. One that the worker has no handler for is told as
	// an event when it starts: its name may be misspelt.
	Queues map[string]int
	// Poll is how often an idle worker looks for tasks. 0 means DefaultPoll.
	Poll time.Duration
	// Grace is how long running handlers may go on when Run's context ends. Then their
	// contexts end, and their tasks are given back. 0 means DefaultGrace; negative, not at
	// all.
	Grace time.Duration
	// PollOnly does without LISTEN, which needs a connection of its own that no pooler in
	// transaction mode gives: tasks then start up to Poll late.
	PollOnly bool
}

// Worker takes tasks and runs their handlers. It is made by NewWorker, given its
// handlers by Kind.Handle and Kind.HandleLeased, and started once by Run.
type Worker struct {
	db     *idem.DB
	config Config
	id     uuid.UUID

	mu       sync.Mutex
	started  bool
	faults   []error
	handlers map[string]*handler // by kind

	lanes   map[string]*lane // by queue
	ends    *completer
	beat    *heartbeat
	running atomic.Int64 // handlers that have not returned
	suspect atomic.Bool  // a task that was running when its worker died is taken, or runs
}

// NewWorker returns a worker on db.
func NewWorker(db *idem.DB, config Config) *Worker {
	return &Worker{db: db, config: config, id: uuid.New(), handlers: make(map[string]*handler)}
}

// handler is what a worker does with the tasks of one kind.
type handler struct {
	kind    string
	options Options
	leased  bool
	run     func(context.Context, *run) error
}

// handle adds a handler, or notes why not.
func (w *Worker) handle(h *handler, fault error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case fault != nil:
		w.faults = append(w.faults, fmt.Errorf("kind %q: %w", h.kind, fault))
	case h.run == nil:
		w.faults = append(w.faults, fmt.Errorf("kind %q: the handler is nil", h.kind))
	case w.started:
		w.faults = append(w.faults, fmt.Errorf("kind %q: the worker has been started; add its handlers before", h.kind))
	case w.handlers[h.kind] != nil:
		w.faults = append(w.faults, fmt.Errorf("kind %q has two handlers; a kind has one in each worker", h.kind))
	default:
		w.handlers[h.kind] = h
	}
}

// Run takes tasks and runs their handlers until ctx ends; then it takes no more, lets
// those that run end within Config.Grace, gives the rest back at once, and returns nil,
// or ErrLeft if handlers have not returned even so. What is wrong with the worker is an
// ErrWorkerInvalid at once. That the database is away is told as an event, and waited
// for. Run owns every goroutine of the worker, and may be called once.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.start(); err != nil {
		return err
	}
	w.introduce(ctx)
	w.warnOfPool(ctx)
	w.warnOfQueues(ctx)
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var background, lanes sync.WaitGroup
	background.Go(func() { w.ends.run(working) })
	background.Go(func() { w.beat.run(working) })
	for _, l := range w.lanes {
		lanes.Go(func() { l.run(ctx) })
		background.Go(func() { l.rescue(working) })
	}
	if !w.config.PollOnly {
		background.Go(func() { w.listen(working) })
	}
	lanes.Wait() // each has drained
	w.ends.drain(working)
	stop()
	background.Wait()
	return w.left()
}

// start checks the worker and makes its parts.
func (w *Worker) start() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	faults := append(w.faults, w.config.valid()...)
	if w.db == nil {
		faults = append(faults, errors.New("the database is nil; open it with idem.Open"))
	}
	if len(w.handlers) == 0 && len(faults) == 0 {
		faults = append(faults, errors.New("it has no handler; give it some with Kind.Handle"))
	}
	if w.started {
		faults = append(faults, errors.New("Run was called before; make another worker"))
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("%w: %w", ErrWorkerInvalid, err)
	}
	w.started = true
	w.ends, w.beat = newCompleter(w), newHeartbeat(w)
	w.lanes = make(map[string]*lane)
	for _, h := range w.handlers {
		q := h.options.Queue
		if w.lanes[q] == nil {
			w.lanes[q] = newLane(w, q, cmp.Or(w.config.Queues[q], w.config.Concurrency, DefaultConcurrency))
		}
		w.lanes[q].handles(h)
	}
	return nil
}

// introduce tells which kinds of tasks the worker handles.
func (w *Worker) introduce(ctx context.Context) {
	for _, h := range w.handlers {
		w.db.Observe(ctx, idem.Event{Kind: idem.EventHandler, Queue: h.options.Queue, TaskKind: h.kind})
	}
}

// warnOfPool tells once if handlers will wait for connections of the pool. Those on a lease have
// one at their end only, and are not counted.
func (w *Worker) warnOfPool(ctx context.Context) {
	holding := make(map[string]int)
	for _, h := range w.handlers {
		if !h.leased {
			holding[h.options.Queue] = w.lanes[h.options.Queue].slots
		}
	}
	slots := 0
	for _, n := range holding {
		slots += n
	}
	if most := int(w.db.Pool().Config().MaxConns); slots > most {
		w.db.Observe(ctx, idem.Event{Kind: idem.EventWorker, Err: fmt.Errorf("%w: up to %d handlers in the transaction run at once, each on a connection of the pool, "+
			"which has %d at most; those without one wait for it within their Options.Timeout: set its MaxConns above %d, or queue.Config.Concurrency so that all queues together have %d at most",
			errCrowded, slots, most, slots, most)})
	}
}

// warnOfQueues tells once if Config.Queues has queues that the worker has no handler for.
// It is no fault: several programs may share one Config.
func (w *Worker) warnOfQueues(ctx context.Context) {
	var idle []string
	for q := range w.config.Queues {
		if w.lanes[q] == nil {
			idle = append(idle, q)
		}
	}
	if len(idle) == 0 {
		return
	}
	slices.Sort(idle)
	w.db.Observe(ctx, idem.Event{Kind: idem.EventWorker, Err: fmt.Errorf("%w: %q, which changes nothing here; it has handlers for %q: correct the name, or leave it where it is meant for another worker",
		errIdleQueues, idle, slices.Sorted(maps.Keys(w.lanes)))})
}

var (
	errCrowded    = errors.New("the pool is too small for the worker")
	errIdleQueues = errors.New("Config.Queues has queues that the worker has no handler for")
)

func (c Config) valid() (faults []error) {
	if c.Concurrency < 0 || c.Concurrency > MaxConcurrency {
		faults = append(faults, fmt.Errorf("Config.Concurrency is %d; it may be 1 to %d, or 0 for %d", c.Concurrency, MaxConcurrency, DefaultConcurrency))
	}
	for q, n := range c.Queues {
		if n <= 0 || n > MaxConcurrency {
			faults = append(faults, fmt.Errorf("Config.Queues[%q] is %d; it may be 1 to %d", q, n, MaxConcurrency))
		}
	}
	if c.Poll < 0 {
		faults = append(faults, fmt.Errorf("Config.Poll is %v; it must be positive, or 0 for %v", c.Poll, DefaultPoll))
	}
	return faults
}

func (w *Worker) poll() time.Duration { return cmp.Or(w.config.Poll, DefaultPoll) }

func (w *Worker) grace() time.Duration { return max(cmp.Or(w.config.Grace, DefaultGrace), 0) }

// left reports handlers that have not returned, or what they wanted to be done after
// their commit.
func (w *Worker) left() error {
	n := 0
	for _, l := range w.lanes {
		n += len(l.running)
	}
	if n = max(n, int(w.running.Load())); n > 0 {
		return fmt.Errorf("%w: %d", ErrLeft, n)
	}
	return nil
}

// trouble tells that something of the worker's own has failed, and will be tried again.
func (w *Worker) trouble(ctx context.Context, queue, doing string, err error) {
	w.db.Observe(ctx, idem.Event{Kind: idem.EventWorker, Queue: queue, Err: fmt.Errorf("%s: %w", doing, err)})
}
