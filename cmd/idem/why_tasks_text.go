package main

import (
	"fmt"
	"strings"

	"github.com/idem-go/idem/admin"
	"github.com/idem-go/idem/queue"
)

// tasksInSentence bounds how many tasks a sentence names.
const tasksInSentence = 5

// unfinished is the first of the tasks that will still run, or runs; nil if there is none.
func unfinished(tasks []admin.Task) *admin.Task {
	for i, t := range tasks {
		if !t.Finished() {
			return &tasks[i]
		}
	}
	return nil
}

// anyTask reports whether one of the tasks has the status.
func anyTask(tasks []admin.Task, status queue.Status) bool {
	for _, t := range tasks {
		if t.Status == status {
			return true
		}
	}
	return false
}

// tasksText says what has become of tasks, the good news last; empty if there are none.
func tasksText(tasks []admin.Task) string {
	var parts []string
	for _, group := range []struct {
		is   func(admin.Task) bool
		text string
	}{
		{hasStatus(queue.StatusFailed), "Failed for good"},
		{hasStatus(queue.StatusCancelled), "Cancelled"},
		{toBeCancelled, "To be cancelled"},
		{func(t admin.Task) bool { return isRunning(t) && !t.Live }, "Left by a worker that is gone"},
		{func(t admin.Task) bool { return isRunning(t) && t.Live }, "Running now"},
		{func(t admin.Task) bool { return t.Status == queue.StatusPending && t.Paused }, "Will run once the queue is resumed"},
		{func(t admin.Task) bool { return t.Status == queue.StatusPending && !t.Paused }, "Will still run"},
		{hasStatus(queue.StatusDone), "Done"},
	} {
		if names := tasksThat(tasks, group.is); names != "" {
			parts = append(parts, group.text+": "+names+"."+retried(tasks, group.is))
		}
	}
	return strings.Join(parts, " ")
}

// retried says how a dead letter of those that is chooses is run again, if it is one.
func retried(tasks []admin.Task, is func(admin.Task) bool) string {
	for _, t := range tasks {
		if is(t) && t.Status == queue.StatusFailed {
			return fmt.Sprintf(" Once the reason is mended: idem tasks retry %d --reason TEXT.", t.ID)
		}
	}
	return ""
}

func hasStatus(status queue.Status) func(admin.Task) bool {
	return func(t admin.Task) bool { return t.Status == status }
}

// isRunning reports whether a task is running, and nobody has asked for its cancellation.
func isRunning(t admin.Task) bool { return t.Status == queue.StatusRunning && !toBeCancelled(t) }

// tasksThat names the tasks of which something is true.
func tasksThat(tasks []admin.Task, is func(admin.Task) bool) string {
	var names []string
	more := 0
	for _, t := range tasks {
		switch {
		case !is(t):
		case len(names) == tasksInSentence:
			more++
		default:
			names = append(names, taskName(t))
		}
	}
	text := strings.Join(names, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// joined are the parts that are not empty, as sentences behind each other.
func joined(parts ...string) string {
	var said []string
	for _, part := range parts {
		if part != "" {
			said = append(said, part)
		}
	}
	return strings.Join(said, " ")
}

// writeTasks writes the tasks of a story, if there are any.
func (e env) writeTasks(tasks []admin.Task, paint func(color, string) string) error {
	if len(tasks) == 0 {
		return nil
	}
	rows := [][]string{{"  TASK", "KIND", paint(plain, "STATUS"), "ATTEMPTS", "CAUSED BY", "CREATED", "UPDATED", "LAST ERROR"}}
	for _, t := range tasks {
		rows = append(rows, []string{
			"  " + taskName(t), printable(t.Kind), paint(taskColor(t), taskText(t)), attemptsText(t), intentText(t.Cause),
			moment(t.CreatedAt), moment(t.UpdatedAt), firstLine(t.LastError),
		})
	}
	return e.writePart("Tasks", rows)
}
