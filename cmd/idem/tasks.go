package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/idem-go/idem/admin"
	"github.com/idem-go/idem/queue"
	"github.com/spf13/cobra"
)

func newTasksCommand(e env) *cobra.Command {
	cmd := newGroup(&cobra.Command{
		Use:   "tasks",
		Short: "Background work: list, show, retry, cancel, enqueue, pause, resume",
		Example: `  idem tasks list --status failed
  idem tasks show 4711
  idem tasks retry 4711 --reason 'the printer is back'
  idem tasks cancel --kind newsletter.send --status pending --reason 'wrong text' --yes
  idem tasks enqueue receipt.send --key receipt:17 --payload '{"order":17}' --reason 'ticket 4711'
  idem tasks pause mail --reason 'the relay is down'`,
	})
	addDatabaseFlags(cmd.PersistentFlags())
	cmd.AddCommand(newTasksListCommand(e), newTasksShowCommand(e), newTasksRetryCommand(e), newTasksCancelCommand(e),
		newTasksEnqueueCommand(e), newTasksPauseCommand(e), newTasksResumeCommand(e))
	return cmd
}

// taskJSON is one task as JSON shows it, in the words of the table's columns.
type taskJSON struct {
	ID           int64       `json:"id"`
	Queue        string      `json:"queue"`
	Kind         string      `json:"kind"`
	Key          *string     `json:"task_key"`
	Status       string      `json:"status"`
	Priority     int         `json:"priority"`
	Attempts     int         `json:"attempts"`
	MaxAttempts  int         `json:"max_attempts"`
	Takes        int         `json:"takes"`
	Alone        bool        `json:"alone,omitempty"`
	Expired      bool        `json:"expired"`
	QueuePaused  bool        `json:"queue_paused,omitempty"`
	Unsettled    int64       `json:"unsettled_effects"`
	LastError    string      `json:"last_error,omitempty"`
	PayloadBytes int64       `json:"payload_bytes"`
	Cause        *intentJSON `json:"cause"`
	CreatedAt    time.Time   `json:"created_at"`
	UpdatedAt    time.Time   `json:"updated_at"`
	RunAt        time.Time   `json:"run_at"`
	LeaseUntil   *time.Time  `json:"lease_until,omitempty"`
	Live         *bool       `json:"lease_live,omitempty"`
	CancelAt     *time.Time  `json:"cancel_at,omitempty"`
	FinishedAt   *time.Time  `json:"finished_at,omitempty"`
	ExpiresAt    *time.Time  `json:"expires_at,omitempty"`
}

func newTaskJSON(t admin.Task) taskJSON {
	out := taskJSON{
		ID: t.ID, Queue: t.Queue, Kind: t.Kind, Status: string(t.Status), Priority: t.Priority,
		Attempts: t.Attempts, MaxAttempts: t.MaxAttempts, Takes: t.Takes, Alone: t.Alone, Expired: t.Expired,
		QueuePaused: t.Paused, Unsettled: t.Unsettled, LastError: t.LastError, PayloadBytes: t.PayloadBytes,
		Cause: newIntentJSON(t.Cause), CreatedAt: t.CreatedAt.UTC(), UpdatedAt: t.UpdatedAt.UTC(), RunAt: t.RunAt.UTC(),
		LeaseUntil: whenever(t.LeaseUntil), CancelAt: whenever(t.CancelAt),
		FinishedAt: whenever(t.FinishedAt), ExpiresAt: whenever(t.ExpiresAt),
	}
	if t.Key != "" {
		out.Key = &t.Key
	}
	if t.Status == queue.StatusRunning {
		out.Live = &t.Live
	}
	return out
}

func tasksJSON(tasks []admin.Task) []taskJSON {
	list := make([]taskJSON, len(tasks))
	for i, t := range tasks {
		list[i] = newTaskJSON(t)
	}
	return list
}

// taskStoryJSON is all that is known of one task.
type taskStoryJSON struct {
	taskJSON
	Running       int               `json:"running_attempt,omitempty"`
	Take          *takeJSON         `json:"take"`
	Rescued       queue.Status      `json:"rescued,omitempty"` // what it becomes whose worker is gone
	Errors        []admin.TaskError `json:"errors"`
	Payload       json.RawMessage   `json:"payload,omitempty"`
	PayloadBase64 []byte            `json:"payload_base64,omitempty"`
	Root          *intentJSON       `json:"root"`
	Outcome       string            `json:"outcome"`
	Retry         string            `json:"retry"`
	SafeNewKey    bool              `json:"safe_new_key"`
	Tasks         []taskJSON        `json:"tasks"`
	Effects       []effectJSON      `json:"effects"`
	Audit         []changeJSON      `json:"audit"`
}

// takeJSON is a worker's hold on a task.
type takeJSON struct {
	Worker     string    `json:"worker"`
	TakenAt    time.Time `json:"taken_at"`
	LeaseUntil time.Time `json:"lease_until"`
	Started    bool      `json:"started"`
	Tasks      int       `json:"tasks"`
}

func newTaskStoryJSON(s admin.TaskStory) taskStoryJSON {
	out := taskStoryJSON{
		taskJSON: newTaskJSON(s.Task), Running: runningAttempt(s), Errors: s.Errors, Root: newIntentJSON(s.Root),
		Outcome: string(s.Outcome), Retry: string(s.Retry), SafeNewKey: s.NewKey,
		Tasks: tasksJSON(s.Tasks), Effects: effectsJSON(s.Effects), Audit: changesJSON(s.Audit),
	}
	for i := range out.Errors {
		out.Errors[i].At = out.Errors[i].At.UTC()
	}
	if s.Task.Status == queue.StatusRunning && !s.Task.Live {
		out.Rescued = s.Rescued()
	}
	if k := s.Take; k != nil {
		out.Take = &takeJSON{Worker: k.Worker, TakenAt: k.TakenAt.UTC(), LeaseUntil: k.LeaseUntil.UTC(), Started: k.Started, Tasks: k.Tasks}
	}
	return out
}

// withPayload adds the payload: as it is if it is JSON.
func (out *taskStoryJSON) withPayload(payload []byte) {
	if json.Valid(payload) {
		out.Payload = payload
		return
	}
	out.PayloadBase64 = payload
}

// runningAttempt is the number of the attempt that is under way; 0 if none is.
func runningAttempt(s admin.TaskStory) int {
	if s.Take == nil || !s.Take.Started {
		return 0
	}
	return s.Task.Attempts + 1
}

// taskName names a task by its key if it has one, and by its id.
func taskName(t admin.Task) string {
	if t.Key == "" {
		return fmt.Sprintf("task %d of %s", t.ID, printable(t.Queue))
	}
	return fmt.Sprintf("%s of %s (task %d)", printable(t.Key), printable(t.Queue), t.ID)
}

// taskColor tells at a glance what an operator should look at.
func taskColor(t admin.Task) color {
	switch {
	case t.Status == queue.StatusFailed:
		return red
	case t.Status == queue.StatusRunning && !t.Live, t.Unsettled > 0, t.Status == queue.StatusPending && t.Paused:
		return yellow
	case t.Status == queue.StatusDone:
		return green
	default:
		return plain
	}
}

// taskText is the status, and what it means for one that is not finished.
func taskText(t admin.Task) string {
	text := string(t.Status)
	switch {
	case t.Status == queue.StatusPending && t.Paused:
		text += ", its queue is paused"
	case t.Status == queue.StatusPending && !t.Due:
		text += ", not due"
	case toBeCancelled(t) && !t.Live:
		text += ", its worker is gone, to be cancelled"
	case t.Status == queue.StatusRunning && !t.Live:
		text += ", its worker is gone"
	case toBeCancelled(t):
		text += ", to be cancelled"
	case t.Over():
		text += ", expired"
	}
	return text
}

func attemptsText(t admin.Task) string {
	return strconv.Itoa(t.Attempts) + " of " + strconv.Itoa(t.MaxAttempts)
}

// firstLine is what fits into a line of an error, which may hold a stack.
func firstLine(text string) string {
	line, _, more := strings.Cut(text, "\n")
	if more {
		line += " ..."
	}
	return orDash(line)
}
