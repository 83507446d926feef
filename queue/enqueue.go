package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/execution"
	"github.com/jackc/pgx/v5"
)

const (
	// MaxTasks is how many tasks can be enqueued at once.
	MaxTasks = 100_000
	// MaxTotal bounds the payloads of one call in bytes: they travel in one message.
	MaxTotal = 64 << 20
)

// Conn is where a task is enqueued: a pgx.Tx, in which it exists only if that commits, or a
// *pgxpool.Pool, *pgxpool.Conn or *pgx.Conn, where it commits by itself.
type Conn interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Unkeyed is the key of a task that has none: enqueueing it again makes another.
const Unkeyed = "\x00unkeyed"

// Task is one task to be enqueued.
type Task[T any] struct {
	// Key names the task within its queue: 1 to MaxKey bytes of visible ASCII, or
	// Unkeyed. Required.
	Key string
	// Payload is what its handler is given: at most MaxPayload bytes as JSON.
	Payload T

	// Delay is how long from now on it is not due, by the database's clock, up to
	// MaxDelay; or RunAt is when it is, from the year 2000 to before 3000, and one that
	// has passed is due now. Not both.
	Delay time.Duration
	RunAt time.Time
	// Priority and MaxAttempts are the kind's if they are nil.
	Priority, MaxAttempts *int
}

// Outcome is what has become of an enqueued task. The set is closed.
type Outcome string

// The outcomes of an enqueued task.
const (
	New       Outcome = "new"       // it is enqueued
	Duplicate Outcome = "duplicate" // the queue remembers the same task by its key
	Mismatch  Outcome = "mismatch"  // the queue remembers another task by its key
)

// Enqueued says what has become of a task, and which one has its key.
type Enqueued struct {
	Outcome Outcome
	ID      int64
	Status  Status // pending if it is new
	Err     error  // a *MismatchError, of a mismatch
}

// Enqueue enqueues one task. In a transaction of the caller's it exists only if that
// commits. Workers are woken after what Idem itself commits; otherwise they find it when
// they look for work (Config.Poll), or see Wake. A key that the queue remembers makes no
// second task: the same kind and payload is a Duplicate and no error, another is a
// *MismatchError and nothing is changed. Delay, RunAt, priority and limit are not
// compared; those of the first count. Two at once with one key wait for each other: on a
// pool for 5 seconds at most, in a transaction as long as its lock_timeout.
//
// A context with a Tracer (idem.WithTracer; a handler's has Config.Tracer) leaves its trace
// with the task, for the span of its attempts to link to.
//
// The error is, for errors.Is, ErrTaskInvalid, ErrMismatch, idem.ErrUnavailable, or the
// transaction's. Above read committed it may be a serialization failure (40001), after
// which the transaction is to be run again. On a pool idem.ErrUnavailable does not tell
// whether the task is enqueued: enqueue it again with its key. Safe for concurrent use as
// far as db is.
func (k *Kind[T]) Enqueue(ctx context.Context, db Conn, key string, payload T) (Enqueued, error) {
	all, err := k.EnqueueMany(ctx, db, Task[T]{Key: key, Payload: payload})
	if len(all) == 0 {
		return Enqueued{}, err
	}
	return all[0], err
}

// EnqueueMany enqueues many tasks at once, as Enqueue does, and says at each index what
// has become of it; of several with one key the first counts, and the others are compared
// with it. The error joins those of the mismatches; the other tasks are enqueued all the
// same. An invalid task is told, with its index, before anything is enqueued. At most
// MaxTasks with payloads of MaxTotal bytes at once.
func (k *Kind[T]) EnqueueMany(ctx context.Context, db Conn, many ...Task[T]) ([]Enqueued, error) {
	asked, err := k.asked(many)
	switch {
	case err != nil:
		return nil, err
	case db == nil:
		return nil, fmt.Errorf("%w: there is nowhere to enqueue it; give a pool, a connection or a transaction", ErrTaskInvalid)
	case len(many) == 0:
		return nil, nil
	}
	e := &enqueueing{queue: k.options.Queue, kind: k.name, retention: k.options.retention(),
		asked: asked, same: k.same, told: make([]Enqueued, len(many))}
	if x, ok := execution.From(ctx); ok {
		if door, scope, key := x.Cause(); key != "" {
			e.cause = [3]*string{&door, &scope, &key}
		}
	}
	if t, ok := idem.TracerFrom(ctx); ok {
		if e.origin = t.Traceparent(ctx); visible("the trace context", e.origin, MaxName) != nil {
			e.origin = "" // or what cannot be stored
		}
	}
	if err := e.all(ctx, db); err != nil {
		return nil, err
	}
	if e.fresh() {
		wakeAfter(ctx, db, e.queue)
	}
	var faults []error
	for _, t := range e.told {
		if t.Err != nil {
			faults = append(faults, t.Err)
		}
	}
	return e.told, errors.Join(faults...)
}
