package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/admin"
	"github.com/idem-go/idem/queue"
	"github.com/spf13/cobra"
)

func newTasksPauseCommand(e env) *cobra.Command {
	return newPauseCommand(e, admin.PauseQueue, admin.ErrPaused, "is paused already",
		"paused the queue %s: nothing is taken from it until idem tasks resume; what is running goes on\n", &cobra.Command{
			Use:   "pause QUEUE",
			Short: "Take nothing more from a queue",
			Long: `Makes every worker take nothing more from a queue, also those that start later. What is
running goes on, and tasks can be enqueued. A queue can be paused ahead of its first
task: that none is there is told, with the queues that have some. Refused (exit code 4)
if it is paused already. Who did it and why is written down in the audit.`,
			Example: `  idem tasks pause mail --reason 'the relay is down'`,
		})
}

func newTasksResumeCommand(e env) *cobra.Command {
	return newPauseCommand(e, admin.ResumeQueue, admin.ErrNotPaused, "is not paused",
		"resumed the queue %s\n", &cobra.Command{
			Use:   "resume QUEUE",
			Short: "Take from a paused queue again",
			Long: `Makes the workers take from a queue again. If no task of it is there, that is told, with
the queues that have some. Refused (exit code 4) if it is not paused. Who did it and why
is written down in the audit.`,
			Example: `  idem tasks resume mail --reason 'the relay is back'`,
		})
}

func newPauseCommand(e env, change func(context.Context, *idem.DB, string, admin.By) (admin.Change, error), refusal error, refused, done string, cmd *cobra.Command) *cobra.Command {
	var by admin.By
	cmd.Args = arguments(1, "one QUEUE")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !cmd.Flag("actor").Changed {
			by.Actor = whoRuns()
		}
		if err := cmp.Or(checkWord("QUEUE", args[0], queue.MaxName), checkBy(cmd, by)); err != nil {
			return err
		}
		return e.withDB(cmd, func(ctx context.Context, db *idem.DB) error {
			if err := admin.Writable(ctx, db.Pool()); err != nil {
				return err
			}
			// Before the change, which is told of as done or not, whatever the list comes to.
			has, names, err := admin.QueuesWithTasks(ctx, db, args[0])
			if err != nil {
				return err
			}
			line, err := change(ctx, db, args[0], by)
			switch {
			case errors.Is(err, refusal):
				return exitf(exitRefused, "refused: the queue %s %s%s", printable(args[0]), refused, noTasksText("; ", has, names))
			case err != nil:
				return err
			case !has:
				e.note("look at the name %s%s", printable(args[0]), noTasksText(": ", has, names))
			}
			if asJSON(cmd) {
				return e.writeJSON(pauseJSON{newChangeJSON(line), has, names})
			}
			return e.write(fmt.Sprintf(done, printable(args[0])))
		})
	}
	addByFlags(cmd, &by)
	return cmd
}

// pauseJSON is the line of the audit, and whether the queue has tasks, and which have.
type pauseJSON struct {
	changeJSON
	HasTasks bool     `json:"queue_has_tasks"`
	Queues   []string `json:"queues_with_tasks"`
}

// noTasksText tells of a queue that has no tasks which queues have some; empty if it has.
func noTasksText(before string, has bool, names []string) string {
	switch {
	case has:
		return ""
	case len(names) == 0:
		return before + "no queue has a task"
	}
	return before + "no task of this queue is there, but of " + scopeNames(names)
}
