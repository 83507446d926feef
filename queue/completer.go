package queue

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgsql/tasks"
	"github.com/idem-go/idem/internal/sqlstate"
	"github.com/jackc/pgx/v5"
)

const (
	// finishBatch bounds how many tasks are finished by one statement.
	finishBatch = 1000
	// finishPause spaces the tries of what the database did not take.
	finishPause = 250 * time.Millisecond
	// endedTakes is how many takes are over before they are forgotten.
	endedTakes = 32
	// quietTime is how long a take that is over waits for others, at most.
	quietTime = time.Second
)

// completer finishes the tasks whose handlers have ended and have written nothing in the
// final transaction: many by one statement, as many as have come while the one before was
// on its way. It also forgets the takes that are over.
type completer struct {
	w     *Worker
	comes chan struct{}

	mu      sync.Mutex
	waiting []*attempt
	later   []*attempt             // those that could not be finished, after a pause
	pending int                    // all that are not finished, those that are on their way among them
	idle    chan struct{}          // closed when nothing is pending; nil if nobody waits
	over    map[string][]uuid.UUID // takes, by queue
}

func newCompleter(w *Worker) *completer {
	return &completer{w: w, comes: make(chan struct{}, 1), over: make(map[string][]uuid.UUID)}
}

// add finishes the task of a soon.
func (c *completer) add(a *attempt) {
	c.mu.Lock()
	c.waiting = append(c.waiting, a)
	c.pending++
	c.mu.Unlock()
	signal(c.comes)
}

// unfinished is how many tasks have ended and are not finished.
func (c *completer) unfinished() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending
}

// close says that a task of a take has ended, however it did.
func (c *completer) close(t *task) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.take.open--; t.take.open == 0 {
		c.over[t.take.queue] = append(c.over[t.take.queue], t.take.fence)
		if len(c.over[t.take.queue]) >= endedTakes {
			signal(c.comes)
		}
	}
}

// run finishes until ctx ends.
func (c *completer) run(ctx context.Context) {
	quiet, again := time.NewTicker(quietTime), idleTimer()
	defer quiet.Stop()
	defer again.Stop()
	for {
		least := endedTakes
		select {
		case <-ctx.Done():
			return
		case <-c.comes:
		case <-again.C:
			c.retry()
		case <-quiet.C:
			least = 1
		}
		for batch := c.next(); len(batch) > 0; batch = c.next() {
			if !c.finish(ctx, batch) {
				again.Reset(finishPause)
			}
		}
		c.forget(ctx, least)
	}
}

// drain waits until everything that has come is finished, and forgets the takes.
func (c *completer) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, takeLimit)
	defer cancel()
	c.mu.Lock()
	idle := make(chan struct{})
	if c.idle = idle; c.pending == 0 {
		close(idle)
		c.idle = nil
	}
	c.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
		c.w.trouble(ctx, "", "finish tasks", errLeftOver)
	}
	c.forget(ctx, 1)
}

var errLeftOver = errors.New("the worker has ended before the database took them; they run again when their leases are over")

func (c *completer) next() []*attempt {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(len(c.waiting), finishBatch)
	batch := c.waiting[:n:n]
	c.waiting = c.waiting[n:]
	return batch
}

// postpone finishes a batch again, after a pause.
func (c *completer) postpone(batch ...*attempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.later = append(c.later, batch...)
}

// retry is the end of the pause.
func (c *completer) retry() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting, c.later = append(c.later, c.waiting...), nil
}

// finish finishes a batch. What the statement has skipped is looked at one by one. It
// reports whether nothing was postponed.
func (c *completer) finish(ctx context.Context, batch []*attempt) bool {
	keep, drop := make([]*attempt, 0, len(batch)), []*attempt(nil)
	for _, a := range batch {
		if a.task.forgets() {
			drop = append(drop, a)
		} else {
			keep = append(keep, a)
		}
	}
	kept, dropped := c.finishBy(ctx, tasks.DoneAll, keep), c.finishBy(ctx, tasks.ForgetAll, drop)
	return kept && dropped
}

func (c *completer) finishBy(ctx context.Context, sql string, batch []*attempt) bool {
	if len(batch) == 0 {
		return true
	}
	done, sent, err := c.finished(ctx, sql, batch)
	if err != nil {
		c.w.trouble(ctx, "", "finish tasks", err)
		for _, a := range batch {
			a.unheard = a.unheard || sent && sqlstate.Fatal(err)
		}
		c.postpone(batch...)
		return false
	}
	all := true
	for i, a := range batch {
		if done[i] {
			c.ended(a, idem.TaskDone, nil)
		} else if !c.look(ctx, a) {
			all = false
		}
	}
	return all
}

// finished is one try to finish a batch. sent says that the database may have got it.
func (c *completer) finished(ctx context.Context, sql string, batch []*attempt) (done []bool, sent bool, err error) {
	all := make([]*task, len(batch))
	for i, a := range batch {
		all[i] = a.task
	}
	queues, ids, fences := columns(all)
	ctx, cancel := context.WithTimeout(ctx, takeLimit)
	defer cancel()
	conn, err := c.w.db.Pool().Acquire(ctx)
	if err != nil {
		return nil, false, err
	}
	defer conn.Release()
	done = make([]bool, len(batch))
	err = byIndex(ctx, conn, sql, []any{queues, ids, fences}, func(rows pgx.Rows) error {
		var n int
		_, err := pgx.ForEachRow(rows, []any{&n}, func() error {
			done[n-1] = true
			return nil
		})
		return err
	})
	return done, true, err
}

// look decides what became of a task that could not be finished: its row is locked, or
// the lease was lost. It waits for nobody, since others wait behind it, and reports false
// if it is to be tried again.
func (c *completer) look(ctx context.Context, a *attempt) bool {
	switch s, err := a.look(ctx, tasks.Stands); {
	case err != nil, s.held():
		c.postpone(a)
		return false
	case a.finished(s):
		c.ended(a, idem.TaskDone, nil)
	default:
		c.ended(a, idem.TaskLeaseLost, idem.ErrLeaseLost)
	}
	return true
}

// ended is the end of an attempt. What is to be done after the commit is the program's,
// and must not keep others waiting.
func (c *completer) ended(a *attempt, result idem.TaskResult, why error) {
	end := func() {
		defer c.less()
		a.close(result, why)
	}
	if a.current.hasAfterCommit() {
		go end()
	} else {
		end()
	}
}

// less is called for each that is finished.
func (c *completer) less() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending--; c.pending == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}

// forget removes the takes that are over, of queues that have at least so many.
func (c *completer) forget(ctx context.Context, least int) {
	c.mu.Lock()
	over := make(map[string][]uuid.UUID)
	for queue, fences := range c.over {
		if len(fences) >= least {
			over[queue] = fences
			delete(c.over, queue)
		}
	}
	c.mu.Unlock()
	for queue, fences := range over {
		c.forgetIn(ctx, queue, fences)
	}
}

// forgetIn forgets takes of one queue. Run waits for it, so it is not cut off when the
// worker ends: nobody else knows of these takes before their leases are over.
func (c *completer) forgetIn(ctx context.Context, queue string, fences []uuid.UUID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tryLimit)
	defer cancel()
	if err := byIndex(ctx, c.w.db.Pool(), tasks.EndTakes, []any{queue, texts(fences)}, ignore); err != nil {
		c.w.trouble(ctx, queue, "forget takes", err) // the end of their leases does it
	}
}
