package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgsql/admin"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
)

// RetryDuplicate is what whoever enqueues a task again meets: its queue remembers its key,
// so nothing is enqueued.
const RetryDuplicate Retry = "duplicate"

// TaskStory is all that is known of one task.
type TaskStory struct {
	Task Task
	// Payload may hold what only the handler may see.
	Payload []byte
	// Errors are what its failed attempts have come to, oldest first, the last 25.
	Errors []TaskError
	// Take is the worker's hold on it; nil if it is not running, or if the worker died and
	// that was found.
	Take *Take
	// Root is the intent that it belongs to: the request that has caused it, or that has
	// caused what has caused it, and so on; the first task of those that are still there if
	// no request has; the task itself if nothing has.
	Root Intent
	// Tasks are those that it has caused, and that they have, oldest first, at most MaxLimit.
	Tasks []Task
	// Effects are those that it, or one of Tasks, has caused or called last, oldest first, at
	// most MaxLimit, without results.
	Effects []Effect
	// Outcome is what became of it, of Tasks and of Effects.
	Outcome Outcome
	// Retry is what enqueueing it again meets: RetryDuplicate, or RetryRuns where its key is
	// not remembered.
	Retry Retry
	// NewKey reports whether another key can double nothing.
	NewKey bool
	// Audit is what was done by hand to it, to Tasks and to Effects, oldest first; Action
	// says to which.
	Audit []Change
}

// ShowTask returns all that is known of one task, as it is now, with its payload. Errors:
// ErrNoTask, idem.ErrUnavailable.
func ShowTask(ctx context.Context, db *idem.DB, id int64) (TaskStory, error) {
	var s TaskStory
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, db.Pool(), options, func(tx pgx.Tx) (err error) {
		s, err = readTask(ctx, tx, id)
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return TaskStory{}, ErrNoTask
	}
	if err != nil {
		return TaskStory{}, failure(ctx, "show a task", err)
	}
	s.judge()
	return s, nil
}

// readTask reads the task and what belongs to it, in one snapshot.
func readTask(ctx context.Context, tx pgx.Tx, id int64) (TaskStory, error) {
	rows, err := tx.Query(ctx, admin.TaskShow, id)
	if err != nil {
		return TaskStory{}, err
	}
	s, err := pgx.CollectExactlyOneRow(rows, scanWholeTask)
	if err != nil {
		return s, err
	}
	if s.Root, err = rootOf(ctx, tx, id); err != nil {
		return s, err
	}
	if s.Tasks, err = tasksCaused(ctx, tx, s.Task.Intent()); err != nil {
		return s, err
	}
	if s.Effects, err = effectsOfTasks(ctx, tx, s.all()); err != nil {
		return s, err
	}
	s.Audit, err = changes(ctx, tx, "", "", s.all(), s.Effects)
	return s, err
}

// rootOf is where the story of a task begins.
func rootOf(ctx context.Context, q querier, id int64) (Intent, error) {
	var root Task
	err := q.QueryRow(ctx, admin.TaskRoot, id).Scan(&root.ID, &root.Queue, &root.Cause.Door, &root.Cause.Scope, &root.Cause.Key)
	if err != nil || root.Cause.Door == "request" {
		return root.Cause, err
	}
	return root.Intent(), nil
}

// TaskRoot returns the intent that a task belongs to, as TaskStory.Root does. Errors: ErrNoTask,
// idem.ErrUnavailable.
func TaskRoot(ctx context.Context, db *idem.DB, id int64) (Intent, error) {
	root, err := rootOf(ctx, db.Pool(), id)
	if errors.Is(err, pgx.ErrNoRows) {
		return Intent{}, ErrNoTask
	}
	return root, failure(ctx, "find the cause of a task", err)
}

// Rescued is what becomes of a running task whose lease is over, once a worker of its queue
// finds it, whatever kinds that handles and whether the queue is paused or not: cancelled
// if somebody has asked for that, failed if it was in its last attempt, otherwise pending.
func (s TaskStory) Rescued() queue.Status {
	switch t := s.Task; {
	case !t.CancelAt.IsZero():
		return queue.StatusCancelled
	case s.Take != nil && s.Take.Started && t.Attempts+1 >= t.MaxAttempts:
		return queue.StatusFailed
	}
	return queue.StatusPending
}

// all are the task and those that it has caused.
func (s *TaskStory) all() []Task { return append([]Task{s.Task}, s.Tasks...) }

// judge says what the state of the task means for whoever asks.
func (s *TaskStory) judge() {
	s.Outcome = outcomeOfTasks(s.all(), s.Effects)
	s.NewKey = s.Outcome == OutcomeNotApplied
	s.Retry = RetryDuplicate
	if s.Task.Key == "" || s.Task.Over() {
		s.Retry = RetryRuns
	}
}

// outcomeOfTasks is what became of tasks and their effects: what is not settled is not
// known, what is done or applied is done, and what is not over is not known yet.
func outcomeOfTasks(tasks []Task, effects []Effect) Outcome {
	switch {
	case anyEffect(effects, false):
		return OutcomeUnknown
	case anyEffect(effects, true), slices.ContainsFunc(tasks, func(t Task) bool { return t.Status == queue.StatusDone }):
		return OutcomeCommitted
	case slices.ContainsFunc(tasks, func(t Task) bool { return !t.Finished() }):
		return OutcomeUnknown
	default:
		return OutcomeNotApplied
	}
}

// anyEffect reports whether an effect is applied, or, if not settled, started or unknown.
func anyEffect(effects []Effect, settled bool) bool {
	return slices.ContainsFunc(effects, func(e Effect) bool { return e.Settled() == settled && e.Status != StatusAbsent })
}

// String names an intent as messages do.
func (i Intent) String() string {
	switch i.Door {
	case "task":
		return fmt.Sprintf("task %s of %s", i.Key, i.Scope)
	case "request":
		return fmt.Sprintf("the request of %q of %q", i.Key, i.Scope)
	}
	return "nothing that was written down"
}
