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
	case elsewhere(err), a.starved(err):
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

// starved reports whether the pool had no connection for the attempt's transaction, which
// is no fault of the task's. A handler that stays all the same is one: nothing but its
// attempts would end that.
func (a *attempt) starved(err error) bool {
	return a.current.tx.hasStarved() && !errors.Is(err, errStray)
}

// record writes down how the attempt has ended, until it is known to be written or the
// lease would be over: then somebody else finds the task.
func (a *attempt) record(ctx context.Context, result idem.TaskResult, why error, sql string, args []any) {
	ctx, cancel := context.WithTimeout(ctx, a.task.lease)
	defer cancel()
	for unheard := false; ; {
		status, sent, err := a.write(ctx, sql, args)
		switch {
		case err == nil:
			a.close(became(result, status), why)
			return
		case errors.Is(err, pgx.ErrNoRows):
			a.missing(ctx, result, why, unheard)
			return
		case sqlstate.Permanent(err), !pause(ctx, finishPause):
			a.w.trouble(ctx, a.task.take.queue, "record the end of an attempt", err)
			a.giveUp(errors.Join(why, err))
			return
		}
		unheard = unheard || sent && sqlstate.Fatal(err)
	}
}

// write is one try of it. sent says that the database may have got it.
func (a *attempt) write(ctx context.Context, sql string, args []any) (status Status, sent bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, tryLimit)
	defer cancel()
	conn, err := a.w.db.Pool().Acquire(ctx)
	if err != nil {
		return "", false, err
	}
	defer conn.Release()
	err = conn.QueryRow(ctx, sql, args...).Scan(&status, new(int32))
	return status, true, err
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
// reply was lost, or since the lease was. unheard says that there was such a try.
func (a *attempt) missing(ctx context.Context, result idem.TaskResult, why error, unheard bool) {
	switch s, err := a.look(ctx, tasks.Look); {
	case err != nil:
		a.giveUp(errors.Join(why, err))
	case a.finished(s): // by a COMMIT that was late
		a.close(idem.TaskDone, nil)
	case unheard && a.left(s, result):
		a.close(became(result, s.status), why)
	default:
		a.close(idem.TaskLeaseLost, errors.Join(idem.ErrLeaseLost, why))
	}
}

// standing is where a task stands.
type standing struct {
	status          Status // none: there is no such task any more
	mine            bool   // under the fence of the attempt that looks
	takes, attempts int32
	alone           bool // it was found to be a dead worker's
}

// held reports whether the task is running, under the attempt's fence.
func (s standing) held() bool { return s.mine && s.status == StatusRunning }

// finished reports whether the attempt has done its task. That there is none any more says
// so only if it would have been deleted, by a try that had no reply: the row of one that a
// successor has done is deleted, too, in time.
func (a *attempt) finished(s standing) bool {
	return s.mine && s.status == StatusDone || s.status == "" && a.unheard && a.task.forgets()
}

// left reports whether a task stands as the attempt has left it with that result, or has
// been taken again since. Whoever finds it to be a dead worker's says so: it is alone then,
// until another attempt has ended.
func (a *attempt) left(s standing, result idem.TaskResult) bool {
	attempts := a.task.attempts + 1
	if result == idem.TaskSnoozed {
		attempts--
	}
	again := s.takes == a.task.takes+1 && s.status == StatusRunning
	return s.attempts == attempts && !s.alone && (again || s.takes == a.task.takes && s.status != StatusRunning)
}

// look says where the task stands: by tasks.Stands now, by tasks.Look once nobody holds it.
func (a *attempt) look(ctx context.Context, sql string) (s standing, err error) {
	ctx, cancel := context.WithTimeout(ctx, commitLimit)
	defer cancel()
	err = a.w.db.Pool().QueryRow(ctx, sql, a.task.take.queue, a.task.id, a.task.take.fence).Scan(&s.status, &s.mine, &s.takes, &s.attempts, &s.alone)
	if errors.Is(err, pgx.ErrNoRows) {
		return standing{}, nil
	}
	return s, err
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
