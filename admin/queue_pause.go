package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgsql/admin"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
)

// Why a queue is not paused or resumed; each is an ErrRefused, too.
var (
	// ErrPaused: the queue is paused.
	ErrPaused = fmt.Errorf("%w: the queue is paused", ErrRefused)
	// ErrNotPaused: the queue is not paused.
	ErrNotPaused = fmt.Errorf("%w: the queue is not paused", ErrRefused)
)

// PauseQueue makes every worker take nothing more from a queue, as queue.Pause does, and
// writes down who did it and why by the same statement. The queue need not have a task; QueuesWithTasks tells.
//
// Errors: ErrPaused, ErrFilter, ErrAudit, idem.ErrUnavailable.
func PauseQueue(ctx context.Context, db *idem.DB, queue string, by By) (Change, error) {
	if err := errors.Join(validQueue(queue), by.check()); err != nil {
		return Change{}, err
	}
	change, err := changeQueue(ctx, db, admin.QueuePause, queue, by)
	if errors.Is(err, pgx.ErrNoRows) {
		return change, ErrPaused
	}
	return change, failure(ctx, "pause a queue", err)
}

// ResumeQueue makes the workers take from a queue again, as queue.Resume does, and writes
// down who did it and why by the same statement.
//
// Errors: ErrNotPaused, ErrFilter, ErrAudit, idem.ErrUnavailable.
func ResumeQueue(ctx context.Context, db *idem.DB, queue string, by By) (Change, error) {
	if err := errors.Join(validQueue(queue), by.check()); err != nil {
		return Change{}, err
	}
	change, err := changeQueue(ctx, db, admin.QueueResume, queue, by)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return change, ErrNotPaused
	case err == nil:
		wake(ctx, db, queue)
	}
	return change, failure(ctx, "resume a queue", err)
}

// QueuesWithTasks reports whether a queue has tasks, also finished ones that are not swept,
// and names those that have, in order, at most MaxLimit of them: whoever pauses a queue of
// which no task is there may have meant another.
//
// Errors: ErrFilter, idem.ErrUnavailable.
func QueuesWithTasks(ctx context.Context, db *idem.DB, queue string) (has bool, names []string, err error) {
	if err := validQueue(queue); err != nil {
		return false, nil, err
	}
	err = db.Pool().QueryRow(ctx, admin.QueuesWithTasks, queue, MaxLimit).Scan(&has, &names)
	return has, names, failure(ctx, "list queues", err)
}

func validQueue(name string) error {
	if err := visible(name, queue.MaxName); err != nil {
		return fmt.Errorf("%w: the queue: %w", ErrFilter, err)
	}
	return nil
}

func changeQueue(ctx context.Context, db *idem.DB, sql, name string, by By) (Change, error) {
	rows, err := db.Pool().Query(ctx, sql, name, by.Actor, by.Reason)
	if err != nil {
		return Change{}, err
	}
	return pgx.CollectExactlyOneRow(rows, scanChange)
}
