package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgsql/admin"
	"github.com/idem-go/idem/internal/pgsql/tasks"
	"github.com/idem-go/idem/internal/standby"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
)

// NewTask is a task that is to be enqueued by hand.
type NewTask struct {
	Kind string
	// Options are those of its kind that count when it is enqueued: Queue, Priority,
	// MaxAttempts and Retention. The program's own are not known here.
	Options queue.Options
	// Key names it within its queue; or it is queue.Unkeyed.
	Key string
	// Payload is stored as it is.
	Payload []byte
	// Delay is how long from now on it is not due.
	Delay time.Duration
}

// EnqueueTask enqueues a task as queue.Kind.Enqueue does, and writes down who did it and why
// in the same transaction. A duplicate changes nothing, so nothing is written down.
//
// Errors: queue.ErrTaskInvalid, queue.ErrMismatch, ErrAudit; idem.ErrUnavailable, after
// which a task with a key can be enqueued again without harm.
func EnqueueTask(ctx context.Context, db *idem.DB, t NewTask, by By) (queue.Enqueued, error) {
	if err := by.check(); err != nil {
		return queue.Enqueued{}, err
	}
	conn, err := db.Pool().Acquire(ctx)
	if err != nil {
		return queue.Enqueued{}, failure(ctx, "enqueue a task", err)
	}
	defer conn.Release()
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), taskLimit)
	defer cancel()
	standby.Warned(conn.Conn().PgConn()) // of what went before
	var told queue.Enqueued
	err = pgx.BeginFunc(limited, conn, func(tx pgx.Tx) (err error) {
		told, err = enqueueWithin(limited, tx, t, by)
		return err
	})
	switch {
	case errors.Is(err, queue.ErrMismatch), errors.Is(err, queue.ErrTaskInvalid):
		return told, err
	case err != nil:
		return queue.Enqueued{}, failure(ctx, "enqueue a task", err)
	case standby.Warned(conn.Conn().PgConn()):
		return queue.Enqueued{}, fmt.Errorf("%w: %w", idem.ErrUnavailable, errTaskUnconfirmed)
	}
	if told.Outcome == queue.New {
		_, _ = conn.Exec(limited, tasks.Wake, cmp.Or(t.Options.Queue, queue.DefaultQueue))
	}
	return told, nil
}

// enqueueWithin enqueues a task, and writes it down if it is new.
func enqueueWithin(ctx context.Context, tx pgx.Tx, t NewTask, by By) (queue.Enqueued, error) {
	kind := queue.Define[[]byte](t.Kind, t.Options)
	all, err := kind.EnqueueMany(ctx, tx, queue.Task[[]byte]{Key: t.Key, Payload: t.Payload, Delay: t.Delay})
	if len(all) == 0 || err != nil || all[0].Outcome != queue.New {
		return first(all), err
	}
	var key *string
	if t.Key != queue.Unkeyed {
		key = &t.Key
	}
	name := Task{Queue: kind.Queue(), ID: all[0].ID}.Intent()
	rows, err := tx.Query(ctx, admin.TaskEnqueue, name.Scope, name.Key, by.Actor, by.Reason, t.Kind, key)
	if err == nil {
		_, err = pgx.CollectExactlyOneRow(rows, scanChange)
	}
	return all[0], err
}

func first(all []queue.Enqueued) queue.Enqueued {
	if len(all) == 0 {
		return queue.Enqueued{}
	}
	return all[0]
}
