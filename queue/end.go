package queue

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgsql/tasks"
	"github.com/idem-go/idem/internal/sqlstate"
	"github.com/jackc/pgx/v5"
)

// maxLastError bounds what is kept of an error, in bytes.
const maxLastError = 2000

// conclude is the one switch over how an attempt that is not done ends.
func (a *attempt) conclude(ctx context.Context, err error) {
	var put *snooze
	var given *failure
	id := []any{a.task.take.queue, a.task.id, a.task.take.fence}
	switch {
	case errors.Is(err, idem.ErrLeaseLost), errors.Is(err, errUnknown), a.task.lost.Load():
		a.giveUp(err)
	case errors.Is(err, ErrCancelled), errors.Is(err, Cancel):
		a.record(ctx, idem.TaskCancelled, err, tasks.Cancel, append(id, lastError(err)))
	case errors.Is(err, ErrDraining):
		a.record(ctx, idem.TaskSnoozed, err, tasks.Snooze, append(id, 0.0))
	case errors.As(err, &given):
		a.record(ctx, idem.TaskFailed, err, tasks.Fail, append(id, lastError(err)))
	case errors.As(err, &put):
		a.record(ctx, idem.TaskSnoozed, nil, tasks.Snooze, append(id, put.wait.Seconds()))
	case elsewhere(err):
		a.record(ctx, idem.TaskSnoozed, err, tasks.Snooze, append(id, a.backoff()))
	default:
		a.record(ctx, idem.TaskRetried, err, tasks.Retry, append(id, lastError(err), a.backoff()))
	}
}

// backoff is how many seconds the task waits for its next attempt.
func (a *attempt) backoff() float64 {
	return a.task.handler.options.pause(int(a.task.attempts) + 1).Seconds()
}

// elsewhere reports whether all that a handler waits for is an effect on which somebody
// else works, who is alive.
func elsewhere(err error) bool {
	return errors.Is(err, idem.ErrInFlight) && !errors.Is(err, errNotEntered) && !errors.Is(err, idem.ErrOutcomeUnknown)
}

// record writes down how the attempt has ended, until it is known to be written or the
// lease would be over: then somebody else finds the task.
func (a *attempt) record(ctx context.Context, result idem.TaskResult, why error, sql string, args []any) {
	ctx, cancel := context.WithTimeout(ctx, a.task.lease)
	defer cancel()
	for {
		status, err := a.write(ctx, sql, args)
		switch {
		case err == nil:
			a.close(became(result, status), why)
			return
		case errors.Is(err, pgx.ErrNoRows):
			a.missing(ctx, result, why)
			return
		case sqlstate.Permanent(err), !pause(ctx, finishPause):
			a.w.trouble(ctx, a.task.take.queue, "record the end of an attempt", err)
			a.giveUp(errors.Join(why, err))
			return
		}
	}
}

// write is one try of it.
func (a *attempt) write(ctx context.Context, sql string, args []any) (status Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, tryLimit)
	defer cancel()
	err = a.w.db.Pool().QueryRow(ctx, sql, args...).Scan(&status, new(int32))
	return status, err
}

// pause waits a while, and reports whether ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// giveUp ends an attempt of whose end nothing could be recorded: somebody else finds the
// task when its lease is over.
func (a *attempt) giveUp(why error) {
	a.w.beat.abandon(a.task)
	a.close(idem.TaskLeaseLost, errors.Join(idem.ErrLeaseLost, why))
}

// became is the result of an attempt whose task has come to a status.
func became(result idem.TaskResult, status Status) idem.TaskResult {
	switch status {
	case StatusFailed:
		return idem.TaskFailed
	case StatusCancelled:
		return idem.TaskCancelled
	}
	return result
}

// missing ends an attempt whose task was not there to be written: by an earlier try, whose
// reply was lost, or since the lease was.
func (a *attempt) missing(ctx context.Context, result idem.TaskResult, why error) {
	switch standing, err := a.look(ctx, false); {
	case err != nil:
		a.giveUp(errors.Join(why, err))
	case standing == endedByMe:
		a.close(result, why)
	case standing == doneByMe, standing == gone && errors.Is(why, errNotYet): // by a COMMIT that was late
		a.close(idem.TaskDone, nil)
	default:
		a.close(idem.TaskLeaseLost, errors.Join(idem.ErrLeaseLost, why))
	}
}

// standing is where a task stands, for the attempt that has ended it.
type standing int

const (
	stillMine standing = iota + 1 // running, under its fence
	doneByMe                      // done, under its fence
	endedByMe                     // failed or cancelled, under its fence
	gone                          // there is no such task any more
	another                       // anything else
)

// look says where the task stands, now or once nobody holds it.
func (a *attempt) look(ctx context.Context, now bool) (standing, error) {
	ctx, cancel := context.WithTimeout(ctx, commitLimit)
	defer cancel()
	sql := tasks.Look
	if now {
		sql = tasks.Stands
	}
	var status Status
	var mine bool
	err := a.w.db.Pool().QueryRow(ctx, sql, a.task.take.queue, a.task.id, a.task.take.fence).Scan(&status, &mine)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return gone, nil
	case err != nil:
		return 0, err
	case !mine:
		return another, nil
	case status == StatusRunning:
		return stillMine, nil
	case status == StatusDone:
		return doneByMe, nil
	}
	return endedByMe, nil
}

// lastError is what an operator is shown of an error: text that PostgreSQL can store, and
// not too much of it.
func lastError(err error) string {
	text := strings.ReplaceAll(strings.ToValidUTF8(err.Error(), "?"), "\x00", "?")
	if text == "" {
		return "an error without a text"
	}
	if len(text) > maxLastError {
		text = strings.ToValidUTF8(text[:maxLastError], "") + "..."
	}
	return text
}
