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

// tasksBatch is how many tasks one statement changes, so that none holds their rows, or a
// snapshot, for long.
const tasksBatch = 500

// TaskTotals tells how far a change of many tasks has come.
type TaskTotals struct {
	// Matched is how many tasks the filter chose at the beginning: those enqueued since
	// then are not meant.
	Matched int64
	// Changed is how many were retried or cancelled, Asked the cancellation of how many
	// running ones was asked for.
	Changed, Asked int64
	// Left is how many were not changed: somebody else had changed them by then, a
	// transaction held them, or an effect of them is not settled.
	Left int64
}

// The tasks that can be changed, if a filter does not say which.
var (
	retryable   = []queue.Status{queue.StatusFailed}
	cancellable = []queue.Status{queue.StatusPending, queue.StatusRunning}
)

// CountRetryable returns how many tasks RetryTasks would retry. Errors: as RetryTasks.
func CountRetryable(ctx context.Context, db *idem.DB, filter TaskFilter) (int64, error) {
	return countChosen(ctx, db, filter.retries)
}

// CountCancellable returns how many tasks CancelTasks would cancel. Errors: as CancelTasks.
func CountCancellable(ctx context.Context, db *idem.DB, filter TaskFilter) (int64, error) {
	return countChosen(ctx, db, filter.cancels)
}

func countChosen(ctx context.Context, db *idem.DB, choose func() ([]any, error)) (int64, error) {
	which, err := choose()
	if err != nil {
		return 0, err
	}
	n, _, err := countTasks(ctx, db, which)
	return n, err
}

// RetryTasks retries all tasks that filter chooses, as RetryTask does: the failed ones, or
// the cancelled ones if filter says so; its Before and Limit are for lists. It does so in
// batches, each of which commits by itself, and tells of the number that it begins with
// and of each batch, by told if that is not nil. What was done when an error came stays
// done; the totals tell.
//
// Errors: ErrFilter, ErrTaskKey, ErrAudit, idem.ErrUnavailable.
func RetryTasks(ctx context.Context, db *idem.DB, filter TaskFilter, by By, told func(TaskTotals)) (TaskTotals, error) {
	which, err := filter.retries()
	return changeMany(ctx, db, which, errors.Join(err, by.check()), told, func(ids []int64, totals *TaskTotals) error {
		changes, err := changeTasks(ctx, db, admin.TaskRetry, ids, by)
		totals.Changed += int64(len(changes))
		woken := map[string]bool{}
		for _, change := range changes {
			if !woken[change.Scope] {
				wake(ctx, db, change.Scope)
				woken[change.Scope] = true
			}
		}
		return err
	})
}

// CancelTasks cancels all pending tasks that filter chooses and asks for the cancellation
// of the running ones, as CancelTask does, unless filter says which of the two. It does so
// as RetryTasks does.
//
// Errors: ErrFilter, ErrTaskKey, ErrAudit, idem.ErrUnavailable.
func CancelTasks(ctx context.Context, db *idem.DB, filter TaskFilter, by By, told func(TaskTotals)) (TaskTotals, error) {
	which, err := filter.cancels()
	return changeMany(ctx, db, which, errors.Join(err, by.check()), told, func(ids []int64, totals *TaskTotals) error {
		if filter.Status != queue.StatusRunning {
			changes, err := changeTasks(ctx, db, admin.TaskCancel, ids, by)
			totals.Changed += int64(len(changes))
			if err != nil {
				return err
			}
		}
		if filter.Status == queue.StatusPending {
			return nil
		}
		changes, err := changeTasks(ctx, db, admin.TaskCancelAsk, ids, by)
		totals.Asked += int64(len(changes))
		if len(changes) > 0 {
			tellCancel(ctx, db)
		}
		return err
	})
}

// changeMany changes the tasks that are there now, a batch at a time. Each is looked at
// once, whatever comes of it.
func changeMany(ctx context.Context, db *idem.DB, which []any, invalid error, told func(TaskTotals), change func([]int64, *TaskTotals) error) (totals TaskTotals, err error) {
	if invalid != nil {
		return totals, invalid
	}
	var last, upTo int64
	if totals.Matched, upTo, err = countTasks(ctx, db, which); err != nil {
		return totals, err
	}
	tell := func() {
		if told != nil {
			told(totals)
		}
	}
	for tell(); ; tell() {
		ids, err := chooseTasks(ctx, db, which, last, upTo)
		if err != nil || len(ids) == 0 {
			return totals, failure(ctx, "choose tasks", err)
		}
		before := totals.Changed + totals.Asked
		if err := change(ids, &totals); err != nil {
			return totals, failure(ctx, "change tasks", err)
		}
		totals.Left += int64(len(ids)) - (totals.Changed + totals.Asked - before)
		last = ids[len(ids)-1]
	}
}

// countTasks is how many tasks there are, and the largest of their ids.
func countTasks(ctx context.Context, db *idem.DB, which []any) (n, upTo int64, err error) {
	err = db.Pool().QueryRow(ctx, admin.TasksCount, which...).Scan(&n, &upTo)
	return n, upTo, failure(ctx, "count tasks", err)
}

func chooseTasks(ctx context.Context, db *idem.DB, which []any, last, upTo int64) ([]int64, error) {
	rows, err := db.Pool().Query(ctx, admin.TasksChoose, append(slices.Clone(which), last, upTo, tasksBatch)...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

// retries are the parameters of f for tasks that are to be retried; an error if it
// chooses others.
func (f TaskFilter) retries() ([]any, error) {
	return f.changes(retryable, queue.StatusFailed, queue.StatusCancelled)
}

// cancels are the parameters of f for tasks that are to be cancelled.
func (f TaskFilter) cancels() ([]any, error) { return f.changes(cancellable, cancellable...) }

func (f TaskFilter) changes(otherwise []queue.Status, allowed ...queue.Status) ([]any, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	if f.Status != "" && !slices.Contains(allowed, f.Status) {
		return nil, fmt.Errorf("%w: a task that is %s is not changed by this; it may be %q", ErrFilter, f.Status, allowed)
	}
	return f.parameters(otherwise...), nil
}
