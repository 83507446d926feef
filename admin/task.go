package admin

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
)

// TaskStatuses returns the statuses of a task.
func TaskStatuses() []queue.Status {
	return []queue.Status{queue.StatusPending, queue.StatusRunning, queue.StatusDone, queue.StatusFailed, queue.StatusCancelled}
}

// Task is what is known of one task. Times are the database's; those that do not apply
// are zero.
type Task struct {
	ID    int64
	Queue string
	Kind  string
	// Key is its name within the queue; empty if it has none.
	Key      string
	Status   queue.Status
	Priority int
	// Attempts is how often its handler was started, without a start that has not ended
	// yet, since it was enqueued or retried by hand; MaxAttempts how often at most.
	Attempts, MaxAttempts int
	// Takes is how often a worker has taken it.
	Takes int
	// Alone reports that it was running when its worker died, so that it is taken alone.
	Alone bool
	// LastError is what the last failed attempt has come to.
	LastError string
	// PayloadBytes is the payload's length.
	PayloadBytes int64
	// Cause is what it was enqueued by.
	Cause Intent

	CreatedAt, UpdatedAt, RunAt time.Time
	// LeaseUntil is until when the worker of a running task is trusted to live; Live
	// reports that this had not passed when the task was read.
	LeaseUntil time.Time
	Live       bool
	// CancelAt is when somebody has asked for its cancellation while it was running.
	CancelAt time.Time
	// FinishedAt is when it was done, failed or cancelled, ExpiresAt until when it is kept,
	// and its key with it.
	FinishedAt, ExpiresAt time.Time
	// Due reports that RunAt had passed, Expired that ExpiresAt had, and Paused that its
	// queue was paused.
	Due, Expired, Paused bool
	// Unsettled is how many of the effects that it has called last are started or unknown.
	Unsettled int64
}

// Intent names the task as the cause of others.
func (t Task) Intent() Intent {
	return Intent{Door: "task", Scope: t.Queue, Key: strconv.FormatInt(t.ID, 10)}
}

// Finished reports whether it is done, failed or cancelled.
func (t Task) Finished() bool {
	return t.Status != queue.StatusPending && t.Status != queue.StatusRunning
}

// Over reports whether its time is over, so that its key can be used anew: neither that nor
// the task itself is remembered any longer than an effect of it is unsettled.
func (t Task) Over() bool { return t.Expired && t.Unsettled == 0 }

// TaskError is what one failed attempt has come to.
type TaskError struct {
	Attempt int       `json:"attempt"`
	At      time.Time `json:"at"`
	Error   string    `json:"error"`
}

// Take is a worker's hold on a running task.
type Take struct {
	// Worker is the worker's random id.
	Worker string
	// TakenAt is since when, LeaseUntil until when the worker is trusted to live.
	TakenAt, LeaseUntil time.Time
	// Started reports that the task's handler may have been started: that is an attempt.
	Started bool
	// Tasks is how many were taken together.
	Tasks int
}

// taskTimes are the columns of a task that may be null.
type taskTimes struct{ lease, cancel, finished, expires *time.Time }

func (t *Task) columns(n *taskTimes) []any {
	return []any{
		&t.ID, &t.Queue, &t.Kind, &t.Key, &t.Status, &t.Priority, &t.Attempts, &t.MaxAttempts, &t.Takes, &t.Alone,
		&t.LastError, &t.PayloadBytes, &t.Cause.Door, &t.Cause.Scope, &t.Cause.Key,
		&t.CreatedAt, &t.UpdatedAt, &t.RunAt, &n.lease, &n.cancel, &n.finished, &n.expires,
		&t.Live, &t.Due, &t.Expired, &t.Paused, &t.Unsettled,
	}
}

func (t *Task) set(n taskTimes) {
	t.LeaseUntil, t.CancelAt = orZero(n.lease), orZero(n.cancel)
	t.FinishedAt, t.ExpiresAt = orZero(n.finished), orZero(n.expires)
}

// scanTask reads one row of tasks_list, tasks_find and tasks_caused.
func scanTask(row pgx.CollectableRow) (Task, error) {
	var t Task
	var n taskTimes
	err := row.Scan(t.columns(&n)...)
	t.set(n)
	return t, err
}

// scanWholeTask reads the row of task_show.
func scanWholeTask(row pgx.CollectableRow) (TaskStory, error) {
	var s TaskStory
	var n taskTimes
	var attempts []byte
	var worker *uuid.UUID
	var taken, lease *time.Time
	var started *bool
	var many *int
	err := row.Scan(append(s.Task.columns(&n), &s.Payload, &attempts, &worker, &taken, &lease, &started, &many)...)
	if err != nil {
		return s, err
	}
	s.Task.set(n)
	if worker != nil {
		s.Take = &Take{Worker: worker.String(), TakenAt: orZero(taken), LeaseUntil: orZero(lease), Started: started != nil && *started}
		if many != nil {
			s.Take.Tasks = *many
		}
	}
	return s, json.Unmarshal(attempts, &s.Errors)
}
