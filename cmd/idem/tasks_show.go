package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/admin"
	"github.com/idem-go/idem/queue"
	"github.com/spf13/cobra"
)

func newTasksShowCommand(e env) *cobra.Command {
	var name string
	var payload bool
	cmd := &cobra.Command{
		Use:   "show ID|KEY",
		Short: "All that is known of one task",
		Long: `Shows what is known of one task, by its id or its key: where it stands, who works on it
and whether that worker lives, what its attempts have come to, what it was caused by,
what it has caused, and what was done to it by hand. The payload may hold what only the
handler may see: it is shown with --payload. A number is an id first.`,
		Example: `  idem tasks show 4711
  idem tasks show receipt:17 --queue mail --payload --json`,
		Args: arguments(1, "one ID or KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cmp.Or(checkTaskName(args[0]), checkFlags(cmd, queue.MaxName, "queue")); err != nil {
				return err
			}
			return e.withDB(cmd, func(ctx context.Context, db *idem.DB) error {
				task, err := findTask(ctx, db, name, args[0])
				if err != nil {
					return err
				}
				return e.tasksShow(ctx, db, cmd, task, payload)
			})
		},
	}
	cmd.Flags().StringVar(&name, "queue", "", "the task's queue; needed if several have the key")
	cmd.Flags().BoolVar(&payload, "payload", false, "show the payload, too")
	return cmd
}

// findTask finds the task with an id, or with a key in the queue, or in the only one that
// has it.
func findTask(ctx context.Context, db *idem.DB, name, text string) (admin.Task, error) {
	found, err := tasksNamed(ctx, db, name, text)
	switch {
	case err != nil:
		return admin.Task{}, err
	case len(found) == 0 && name == "":
		return admin.Task{}, exitf(exitNotFound, "no queue has the task %s: it was never enqueued, or its time is over and it was swept", printable(text))
	case len(found) == 0:
		return admin.Task{}, exitf(exitNotFound, "the queue %s has no task %s: it was never enqueued, or its time is over and it was swept", printable(name), printable(text))
	case len(found) > 1:
		return admin.Task{}, usagef("several queues have the task %s; add --queue: %s", printable(text), scopeNames(queuesOf(found)))
	}
	return found[0], nil
}

// tasksNamed are the tasks that a text names, in the queue if one is given: the one with
// that id, else those with that key.
func tasksNamed(ctx context.Context, db *idem.DB, name, text string) ([]admin.Task, error) {
	all, err := admin.FindTasks(ctx, db, text)
	if err != nil {
		return nil, err
	}
	var found []admin.Task
	for _, t := range all {
		switch {
		case name != "" && t.Queue != name:
		case strconv.FormatInt(t.ID, 10) == text:
			return []admin.Task{t}, nil
		default:
			found = append(found, t)
		}
	}
	return found, nil
}

func queuesOf(found []admin.Task) []string {
	queues := make([]string, len(found))
	for i, t := range found {
		queues[i] = t.Queue
	}
	return queues
}

// showTask is what is known of a task that was found a moment ago.
func showTask(ctx context.Context, db *idem.DB, id int64) (admin.TaskStory, error) {
	story, err := admin.ShowTask(ctx, db, id)
	if errors.Is(err, admin.ErrNoTask) {
		return story, exitf(exitNotFound, "the task %d has just been removed", id)
	}
	return story, err
}

func (e env) tasksShow(ctx context.Context, db *idem.DB, cmd *cobra.Command, task admin.Task, payload bool) error {
	story, err := showTask(ctx, db, task.ID)
	if err != nil {
		return err
	}
	if asJSON(cmd) {
		out := newTaskStoryJSON(story)
		if payload {
			out.withPayload(story.Payload)
		}
		return e.writeJSON(out)
	}
	paint := e.painter(cmd)
	if err := e.writeTable(taskDetails(story, paint)); err != nil {
		return err
	}
	if payload {
		if err := e.write("\n" + bodyText(story.Payload)); err != nil {
			return err
		}
	}
	return e.writeTaskParts(story, paint)
}

// writeTaskParts writes what belongs to a task: its failed attempts, what it has caused,
// and what was done by hand.
func (e env) writeTaskParts(s admin.TaskStory, paint func(color, string) string) error {
	if len(s.Errors) > 0 {
		if err := e.writePart("Failed attempts", attemptRows(s.Errors)); err != nil {
			return err
		}
	}
	if err := e.writeTasks(s.Tasks, paint); err != nil {
		return err
	}
	if err := e.writeEffects(s.Effects, len(s.Tasks) > 0, paint); err != nil {
		return err
	}
	return e.writeAudit(s.Audit)
}

func (e env) writePart(title string, rows [][]string) error {
	if err := e.write("\n" + title + ":\n"); err != nil {
		return err
	}
	return e.writeTable(rows)
}

func attemptRows(attempts []admin.TaskError) [][]string {
	var rows [][]string
	for _, a := range attempts {
		rows = append(rows, []string{"  " + strconv.Itoa(a.Attempt), moment(a.At), firstLine(a.Error)})
	}
	return rows
}

// taskDetails are the lines of idem tasks show: a name and a value each.
func taskDetails(s admin.TaskStory, paint func(color, string) string) [][]string {
	t := s.Task
	rows := [][]string{
		{"id", strconv.FormatInt(t.ID, 10)},
		{"queue", printable(t.Queue)},
		{"kind", printable(t.Kind)},
		{"key", orDash(t.Key)},
		{"status", paint(taskColor(t), taskText(t))},
		{"caused by", intentText(t.Cause)},
	}
	add := func(name, value string) { rows = append(rows, []string{name, value}) }
	if s.Root != t.Cause && s.Root != t.Intent() {
		add("story of", intentText(s.Root))
	}
	add("attempts", attemptsText(t))
	add("takes", strconv.Itoa(t.Takes))
	add("priority", strconv.Itoa(t.Priority))
	add("payload", fmt.Sprintf("%d bytes", t.PayloadBytes))
	switch {
	case t.Status == queue.StatusPending:
		add("due", moment(t.RunAt))
		add("waits for", waitsFor(t))
		if t.Alone {
			add("taken", "alone: it was running when its worker died")
		}
	case t.Status == queue.StatusRunning:
		add("lease until", taskLeaseText(s))
		add(takeName(t), takeText(s))
	}
	if !t.CancelAt.IsZero() {
		add("cancellation", "asked for at "+moment(t.CancelAt))
	}
	if t.Unsettled > 0 {
		add("unsettled", fmt.Sprintf("%d of its effects", t.Unsettled))
	}
	if t.LastError != "" {
		add("last error", firstLine(t.LastError))
	}
	add("enqueued", moment(t.CreatedAt))
	add("updated", moment(t.UpdatedAt))
	if t.Finished() {
		add("finished", moment(t.FinishedAt))
		add("kept until", moment(t.ExpiresAt))
	}
	return rows
}

// taskLeaseText says whether the worker is trusted to live.
func taskLeaseText(s admin.TaskStory) string {
	if s.Task.Live {
		return moment(s.Task.LeaseUntil)
	}
	return moment(s.Task.LeaseUntil) + ", which is over: " + rescueText(s)
}

// takeName is the name of the line that says who has a running task.
func takeName(t admin.Task) string {
	if t.Live {
		return "running now"
	}
	return "was running"
}

// takeText says who has a running task, and what of it.
func takeText(s admin.TaskStory) string {
	k := s.Take
	if k == nil {
		return "by a worker that is not known"
	}
	parts := []string{"by worker " + k.Worker, "since " + moment(k.TakenAt)}
	if n := runningAttempt(s); n > 0 {
		parts = append(parts, fmt.Sprintf("attempt %d", n))
	} else {
		parts = append(parts, "taken, not started yet")
	}
	if k.Tasks > 1 {
		parts = append(parts, fmt.Sprintf("one of %d taken together", k.Tasks))
	}
	return strings.Join(parts, ", ")
}
