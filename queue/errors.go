package queue

import (
	"errors"
	"fmt"
	"time"
)

// The conditions that callers tell apart with errors.Is, beside package idem's.
var (
	// ErrTaskInvalid reports a task that cannot be: a key, a payload or a name over its
	// limit, a payload that cannot be encoded, a due time beyond the calendar. The text
	// says what to do. Nothing has been enqueued.
	ErrTaskInvalid = errors.New("queue: invalid task")

	// ErrMismatch reports a task whose key the queue remembers for another kind or
	// payload. That task has not been enqueued, and the one that is remembered has not
	// been changed. See MismatchError.
	ErrMismatch = errors.New("queue: the key belongs to another task")

	// ErrWorkerInvalid reports a worker that cannot run: a handler registered twice, a
	// kind with options that cannot be, none to handle. All faults are reported at once.
	ErrWorkerInvalid = errors.New("queue: invalid worker")

	// ErrCancelled is the cause with which the context of a running handler ends when
	// somebody asks for the task's cancellation.
	ErrCancelled = errors.New("queue: the task's cancellation was asked for; return from the handler")

	// ErrTimeout is the cause with which the context of a handler ends when
	// Options.Timeout is over.
	ErrTimeout = errors.New("queue: the handler exceeded Options.Timeout")

	// ErrDraining is the cause with which the context of a handler ends when its worker
	// shuts down and Config.Grace is over. The task is given back, which costs no attempt.
	ErrDraining = errors.New("queue: the worker shuts down; return from the handler")

	// ErrLeft reports, from Run, handlers that had not returned when the worker had to
	// end. Their tasks were given back, and can record nothing more.
	ErrLeft = errors.New("queue: handlers were left behind")
)

// MismatchError says which task has the key. It is an ErrMismatch.
type MismatchError struct {
	Key    string
	ID     int64  // of the task that is remembered
	Kind   string // of that task
	Status Status // of that task
}

// Error names the task.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("%v: %s is task %d of kind %s (%s), with another kind or payload; use another key for another task",
		ErrMismatch, e.Key, e.ID, e.Kind, e.Status)
}

// Is reports that it is an ErrMismatch.
func (e *MismatchError) Is(target error) bool { return target == ErrMismatch }

// failure is the error of a handler that gives its task up.
type failure struct{ cause error }

func (e *failure) Error() string { return e.cause.Error() }
func (e *failure) Unwrap() error { return e.cause }

// Fail says, as the error of a handler, that no further attempt can help: the task is
// failed at once, a dead letter, whatever attempts are left. It may be wrapped.
// Fail(nil) is nil.
func Fail(err error) error {
	if err == nil {
		return nil
	}
	return &failure{err}
}

// snooze is the error of a handler that puts its task off.
type snooze struct{ wait time.Duration }

func (e *snooze) Error() string { return fmt.Sprintf("snoozed for %v", e.wait) }

// Snooze says, as the error of a handler, that the task is to run again after d, from
// now on: not an error, so that it costs no attempt. What the handler has written in
// its transaction is rolled back. A negative d counts as 0, and one beyond MaxDelay as
// MaxDelay. It may be wrapped.
func Snooze(d time.Duration) error { return &snooze{min(max(d, 0), MaxDelay)} }

// Cancel says, as the error of a handler, that the task is not wanted any more: it is
// cancelled. What the handler has written in its transaction is rolled back. It may be
// wrapped.
//
//lint:ignore ST1012 it is returned like Fail and Snooze, and read as one of them
var Cancel = errors.New("queue: cancelled by its handler")
