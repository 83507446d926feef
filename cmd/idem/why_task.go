package main

import (
	"context"
	"fmt"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/admin"
	"github.com/idem-go/idem/queue"
	"github.com/spf13/cobra"
)

// whyTask tells the story of a task: that of the request which it belongs to, or, if none
// has caused it, its own.
func (e env) whyTask(ctx context.Context, db *idem.DB, cmd *cobra.Command, id int64) error {
	task, err := showTask(ctx, db, id)
	if err != nil {
		return err
	}
	if task.Root.Door != "request" {
		return e.writeTaskStory(cmd, task)
	}
	story, err := admin.Why(ctx, db, task.Root.Scope, task.Root.Key)
	if err != nil {
		return err
	}
	if asJSON(cmd) {
		out := newStoryJSON(story)
		return e.writeJSON(taskAndStoryJSON{Task: newTaskStoryJSON(task), Story: &out})
	}
	head := taskName(task.Task) + " belongs to " + intentText(task.Root) + ": " + taskText(task.Task) + ".\n"
	if err := e.write(head); err != nil {
		return err
	}
	return e.writeStory(story, e.painter(cmd))
}

type taskAndStoryJSON struct {
	Task  taskStoryJSON `json:"task"`
	Story *storyJSON    `json:"story"`
}

// writeTaskStory writes the story of a task that no request has caused.
func (e env) writeTaskStory(cmd *cobra.Command, s admin.TaskStory) error {
	if asJSON(cmd) {
		return e.writeJSON(taskAndStoryJSON{Task: newTaskStoryJSON(s)})
	}
	paint := e.painter(cmd)
	err := e.write(taskHead(s) + "\n\n" +
		"Enqueue it again?           " + enqueueText(s) + "\n" +
		"Use a new key?              " + paint(verdictColor(s.NewKey), newTaskKeyText(s)) + "\n" +
		"What happened to the money? " + paint(outcomeColor(s.Outcome), taskMoneyText(s)) + "\n\n")
	if err != nil {
		return err
	}
	if err := e.writeTable(taskDetails(s, paint)); err != nil {
		return err
	}
	return e.writeTaskParts(s, paint)
}

// taskHead says in one sentence where the task is in its life.
func taskHead(s admin.TaskStory) string {
	t, name := s.Task, taskName(s.Task)
	switch t.Status {
	case queue.StatusPending:
		return name + " waits" + waitText(t) + "."
	case queue.StatusRunning:
		if !t.Live {
			return name + " was running when its worker fell silent; " + rescueText(s) + "."
		}
		return name + " is running now" + cancelText(t) + "."
	case queue.StatusDone:
		return name + " is done."
	case queue.StatusFailed:
		return name + " has failed for good, after " + attemptsText(t) + " attempts: it is a dead letter."
	}
	return name + " was cancelled."
}

// waitText says what a pending task waits for.
func waitText(t admin.Task) string {
	text := " for " + workerOf(t)
	if !t.Due {
		text = " until " + moment(t.RunAt)
	}
	if t.Attempts > 0 {
		text += ", after " + attemptsText(t) + " attempts"
	}
	if t.Paused {
		text += "; " + pausedText(t)
	}
	return text
}

func cancelText(t admin.Task) string {
	if t.CancelAt.IsZero() {
		return ""
	}
	return "; its cancellation was asked for, so no other attempt follows"
}

// enqueueText says what enqueueing the task again meets.
func enqueueText(s admin.TaskStory) string {
	switch t := s.Task; {
	case t.Key == "":
		return "No, not without need: it has no key, so that would be another task, and run as well."
	case s.Retry == admin.RetryDuplicate && t.Status == queue.StatusFailed, s.Retry == admin.RetryDuplicate && t.Status == queue.StatusCancelled:
		return fmt.Sprintf("It does no harm and does not help: its key is remembered until %s. It runs again by idem tasks retry %d --reason TEXT.", moment(t.ExpiresAt), t.ID)
	case nextStatus(s) == queue.StatusCancelled, nextStatus(s) == queue.StatusFailed:
		return fmt.Sprintf("It does no harm and does not help: it is a duplicate of a task that is about to be %s. Once it is, it runs again by idem tasks retry %d --reason TEXT.", nextStatus(s), t.ID)
	case s.Retry == admin.RetryDuplicate:
		return "It does no harm: it is a duplicate, and nothing runs twice. With another payload it is refused."
	case s.Outcome == admin.OutcomeNotApplied:
		return "Yes. The time of its key is over: it runs as new."
	default:
		return "No. The time of its key is over: it runs as new, and what is not an effect would be done a second time."
	}
}

// newTaskKeyText says whether another key can double anything.
func newTaskKeyText(s admin.TaskStory) string {
	if s.NewKey {
		return fmt.Sprintf("Yes, if this one is not retried: nothing that Idem knows of was done. Better is idem tasks retry %d --reason TEXT.", s.Task.ID)
	}
	if e := unsettled(s.Effects); e != nil {
		return "No. Nobody knows whether " + effectName(*e) + " was applied: it might be done a second time."
	}
	switch {
	case nextStatus(s) == queue.StatusCancelled, nextStatus(s) == queue.StatusFailed:
		return fmt.Sprintf("No, not before it is %s: until then its worker may only be late, and finish it.", nextStatus(s))
	case !s.Task.Finished():
		return "No. Both would run."
	case unfinished(s.Tasks) != nil:
		return "No. " + unfinishedText(*unfinished(s.Tasks)) + "."
	case s.Task.Status == queue.StatusDone:
		return "No. It would do it a second time."
	default:
		return "No. An effect is applied, or a task that it has caused is done: see first what it came to."
	}
}

// taskMoneyText says what became of the task and of its effects.
func taskMoneyText(s admin.TaskStory) string {
	if e := unsettled(s.Effects); e != nil {
		return unsettledText(*e, append([]admin.Task{s.Task}, s.Tasks...))
	}
	text := ""
	switch {
	case s.Task.Status == queue.StatusDone:
		text = "Done: what the task wrote is in the database."
	case !s.Task.Finished():
		text = "Not decided: the task is not finished."
	case s.Outcome == admin.OutcomeNotApplied:
		text = "Nothing was done that Idem knows of: no attempt has come to an end that counts."
	}
	return joined(text, appliedText(s.Effects), tasksText(s.Tasks))
}
