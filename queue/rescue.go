package queue

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgsql/tasks"
	"github.com/jackc/pgx/v5"
)

const (
	// rescueInterval is how often a lane looks for tasks whose worker has died, at the
	// latest.
	rescueInterval = time.Second
	// rescueBatch bounds how many takes it looks at at once.
	rescueBatch = 100
)

// errDied is what is said of an attempt whose worker died.
var errDied = errors.New("the worker died while it was running")

// rescue looks for tasks whose worker has died, until ctx ends. Every worker does that for
// its queues; no one has to lead.
func (l *lane) rescue(ctx context.Context) {
	for pause(ctx, rescueInterval/2+rand.N(rescueInterval/2)) {
		for more := true; more && ctx.Err() == nil; {
			var err error
			if more, err = l.rescueOnce(ctx); err != nil && ctx.Err() == nil {
				l.w.trouble(ctx, l.queue, "rescue tasks", err)
			}
		}
	}
}

// rescueOnce looks once, and reports whether it has found something.
func (l *lane) rescueOnce(ctx context.Context) (found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, takeLimit)
	defer cancel()
	e := idem.Event{Kind: idem.EventTask, Queue: l.queue, Err: errDied}
	var key *string
	var status Status
	var started bool
	var dead []idem.Event
	into := []any{&e.TaskID, &e.TaskKind, &key, &status, &e.Attempt, &started}
	err = byIndex(ctx, l.w.db.Pool(), tasks.Rescue, []any{l.queue, rescueBatch, errDied.Error(), l.w.id}, func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, into, func() error {
			found = true
			if !started {
				return nil
			}
			e.Key, e.TaskResult = "", became(idem.TaskRetried, status)
			if key != nil {
				e.Key = *key
			}
			dead = append(dead, e)
			return nil
		})
		return err
	})
	if err != nil {
		return false, err // if it is committed, others are told by polling
	}
	for _, e := range dead {
		l.w.db.Observe(ctx, e)
		l.wakeAlone()
	}
	if found {
		l.wake()
	}
	return found, nil
}
