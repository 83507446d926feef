package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgsql/admin"
	"github.com/idem-go/idem/internal/pgsql/tasks"
	"github.com/idem-go/idem/internal/standby"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
)

const (
	// taskTries and taskPause bound the wait for whoever holds the task's row: one second,
	// since a lease is renewed in a moment.
	taskTries = 20
	taskPause = 50 * time.Millisecond
	// taskLimit bounds one statement that changes tasks.
	taskLimit = 10 * time.Second
)

// Why a task is not changed; each is an ErrRefused, too.
var (
	// ErrTaskDone: what the task was to do is done; a second run would do it again.
	ErrTaskDone = fmt.Errorf("%w: the task is done", ErrRefused)
	// ErrTaskUnfinished: the task is pending or running, so that there is nothing to
	// retry.
	ErrTaskUnfinished = fmt.Errorf("%w: the task is not finished", ErrRefused)
	// ErrTaskFinished: the task is done, failed or cancelled, so that there is nothing to
	// cancel.
	ErrTaskFinished = fmt.Errorf("%w: the task is finished", ErrRefused)
	// ErrTaskUnsettled: the task has called an effect of which nobody knows what has become,
	// and only its next attempt finds that out.
	ErrTaskUnsettled = fmt.Errorf("%w: an effect of the task is not settled", ErrRefused)
	// ErrTaskBusy: a transaction holds the task: its handler's, which is about to end.
	ErrTaskBusy = fmt.Errorf("%w: a transaction holds the task", ErrRefused)
)

// By says who changes something, and why: it is written down in the audit, for ever.
type By struct {
	// Actor and Reason have 1 to MaxActor and 1 to MaxReason bytes of UTF-8.
	Actor, Reason string
}

func (b By) check() error { return validAudit(b.Actor, b.Reason) }

// RetryTask makes a failed or cancelled task pending again, due at once, with all its
// attempts, as if it had just been enqueued; what its attempts have come to so far is
// kept. Who did it and why is written down by the same statement. An effect that is
// unknown is not called again by that: settle it first, or the attempts end as the last
// one did. Of several at once one retries.
//
// Errors: ErrNoTask; ErrRefused with its reason ErrTaskDone, ErrTaskUnfinished or
// ErrTaskBusy; ErrAudit; idem.ErrUnavailable, after which ShowTask tells.
func RetryTask(ctx context.Context, db *idem.DB, id int64, by By) (Change, error) {
	change, _, err := changeTask(ctx, db, id, by, Task.unretryable, admin.TaskRetry)
	if err == nil {
		wake(ctx, db, change.Scope)
	}
	return change, err
}

// unretryable is why the task may not be retried; nil if it may.
func (t Task) unretryable() error {
	switch t.Status {
	case queue.StatusDone:
		return fmt.Errorf("%w since %s; a second run would do it again", ErrTaskDone, t.FinishedAt.UTC().Format(time.RFC3339))
	case queue.StatusPending, queue.StatusRunning:
		return fmt.Errorf("%w: it is %s", ErrTaskUnfinished, t.Status)
	}
	return nil
}

// CancelTask cancels a pending task, or asks for the cancellation of a running one: its
// handler's context ends, and however the attempt ends, no other follows; what it finishes
// all the same is done. asked tells which. Who did it and why is written down by the same
// statement. A pending task that has called an effect which is not settled is refused,
// since nobody else would find out what has become of that; a running one is asked, and
// an effect that it leaves behind keeps it from being swept.
//
// Errors: ErrNoTask; ErrRefused with its reason ErrTaskFinished, ErrTaskUnsettled or
// ErrTaskBusy; ErrAudit; idem.ErrUnavailable, after which ShowTask tells.
func CancelTask(ctx context.Context, db *idem.DB, id int64, by By) (change Change, asked bool, err error) {
	change, n, err := changeTask(ctx, db, id, by, Task.uncancellable, admin.TaskCancel, admin.TaskCancelAsk)
	asked = err == nil && n == 1
	if asked {
		tellCancel(ctx, db)
	}
	return change, asked, err
}

// uncancellable is why the task may not be cancelled; nil if it may.
func (t Task) uncancellable() error {
	switch {
	case t.Finished():
		return fmt.Errorf("%w: it is %s", ErrTaskFinished, t.Status)
	case t.Status == queue.StatusPending && t.Unsettled > 0:
		return fmt.Errorf("%w; let the next attempt find out, or settle it: idem why tells which", ErrTaskUnsettled)
	}
	return nil
}

// changeTask changes one task by the first of the statements that its row allows, and
// tells by which. refusal is why none may.
func changeTask(ctx context.Context, db *idem.DB, id int64, by By, refusal func(Task) error, statements ...string) (Change, int, error) {
	if err := by.check(); err != nil {
		return Change{}, 0, err
	}
	for try := 1; ; try++ {
		for n, sql := range statements {
			changes, err := changeTasks(ctx, db, sql, []int64{id}, by)
			if err != nil {
				return Change{}, 0, failure(ctx, "change a task", err)
			}
			if len(changes) == 1 {
				return changes[0], n, nil
			}
		}
		found, err := findTasks(ctx, db.Pool(), nil, &id)
		switch {
		case err != nil:
			return Change{}, 0, failure(ctx, "find a task", err)
		case len(found) == 0:
			return Change{}, 0, ErrNoTask
		}
		if err := refusal(found[0]); err != nil {
			return Change{}, 0, err
		}
		if try == taskTries {
			return Change{}, 0, fmt.Errorf("%w; try again in a moment", ErrTaskBusy)
		}
		select {
		case <-ctx.Done():
			return Change{}, 0, failure(ctx, "change a task", ctx.Err())
		case <-time.After(taskPause):
		}
	}
}

// changeTasks runs one of the statements that change tasks by hand. What it has begun does
// not depend on the caller's patience.
func changeTasks(ctx context.Context, db *idem.DB, sql string, ids []int64, by By) ([]Change, error) {
	conn, err := db.Pool().Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), taskLimit)
	defer cancel()
	standby.Warned(conn.Conn().PgConn()) // of what went before
	rows, err := conn.Query(ctx, sql, ids, by.Actor, by.Reason)
	if err != nil {
		return nil, err
	}
	changes, err := pgx.CollectRows(rows, scanChange)
	if err == nil && standby.Warned(conn.Conn().PgConn()) {
		return nil, fmt.Errorf("%w: %w", idem.ErrUnavailable, errTaskUnconfirmed)
	}
	return changes, err
}

// errTaskUnconfirmed is a change that may be lost.
var errTaskUnconfirmed = fmt.Errorf("it is done here, but no synchronous standby has confirmed it: a failover may lose it; idem tasks show tells")

// wake tells the workers of a queue that a task is to be taken. One that is not told finds
// it when it looks.
func wake(ctx context.Context, db *idem.DB, queue string) {
	_, _ = db.Pool().Exec(ctx, tasks.Wake, queue)
}

// tellCancel tells the workers to look whose cancellation was asked for. One that is not
// told sees it when it renews its leases.
func tellCancel(ctx context.Context, db *idem.DB) { _, _ = db.Pool().Exec(ctx, admin.TaskCancelTell) }
