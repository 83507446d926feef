package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/admin"
	"github.com/idem-go/idem/queue"
	"github.com/spf13/cobra"
)

// tasksFlags are the flags that choose tasks.
type tasksFlags struct {
	queue, kind, status, key, cause, causeScope, before string
	limit                                               int
}

// addTasksFlags adds them; which are the statuses that can be chosen.
func addTasksFlags(cmd *cobra.Command, f *tasksFlags, which ...queue.Status) {
	cmd.Flags().StringVar(&f.queue, "queue", "", "only tasks of this queue")
	cmd.Flags().StringVar(&f.kind, "kind", "", "only tasks of this kind")
	cmd.Flags().StringVar(&f.status, "status", "", "only tasks with this status: "+statusWords(which))
	cmd.Flags().StringVar(&f.key, "key", "", "only tasks with this key")
	cmd.Flags().StringVar(&f.cause, "cause", "", "only tasks that were enqueued by the request with this key,\nor by the task with this id")
	cmd.Flags().StringVar(&f.causeScope, "cause-scope", "", "the scope of that request, or the queue of that task")
	_ = cmd.RegisterFlagCompletionFunc("status", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		words := make([]string, len(which))
		for i, s := range which {
			words[i] = string(s)
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	})
}

// statusWords lists statuses as a sentence does.
func statusWords(which []queue.Status) string {
	text := ""
	for i, s := range which {
		switch {
		case i == 0:
		case i == len(which)-1:
			text += " or "
		default:
			text += ", "
		}
		text += string(s)
	}
	return text
}

func newTasksListCommand(e env) *cobra.Command {
	var flags tasksFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "The tasks, newest first",
		Long: `Lists the tasks, newest first, also those that are finished until their time is over
and they are swept. Those that are failed are dead letters: idem tasks retry. Reads the
table from its newest row on, until there are enough.`,
		Example: `  idem tasks list --status failed
  idem tasks list --queue mail --kind receipt.send
  idem tasks list --cause 4f2b4a1a-7f0e-4d1b-9b2e-9a0fb02a1d77
  idem tasks list --before 4711 --limit 1000 --json`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := flags.filter(cmd, admin.TaskStatuses()...)
			if err != nil {
				return err
			}
			return e.withDB(cmd, func(ctx context.Context, db *idem.DB) error {
				return e.tasksList(ctx, db, cmd, filter)
			})
		},
	}
	addTasksFlags(cmd, &flags, admin.TaskStatuses()...)
	cmd.Flags().StringVar(&flags.before, "before", "", "only older tasks: a time, or an id, such as the list before ended with")
	cmd.Flags().IntVar(&flags.limit, "limit", admin.DefaultLimit, fmt.Sprintf("how many tasks, 1 to %d", admin.MaxLimit))
	return cmd
}

// filter checks the flags before any database work; admin has the last word.
func (f tasksFlags) filter(cmd *cobra.Command, which ...queue.Status) (admin.TaskFilter, error) {
	filter := admin.TaskFilter{Queue: f.queue, Kind: f.kind, Status: queue.Status(f.status), Key: f.key,
		Cause: admin.Intent{Scope: f.causeScope, Key: f.cause}, Limit: f.limit}
	if cmd.Flag("limit") != nil {
		if err := checkRange("--limit", f.limit, 1, admin.MaxLimit); err != nil {
			return filter, err
		}
	}
	if cmd.Flag("status").Changed && !slices.Contains(which, filter.Status) {
		return filter, usagef("--status is %q, it may be %s", f.status, statusWords(which))
	}
	if err := cmp.Or(checkFlags(cmd, queue.MaxName, "queue", "kind"), checkFlags(cmd, queue.MaxKey, "key"), checkFlags(cmd, idem.MaxKey, "cause")); err != nil {
		return filter, err
	}
	if cmd.Flag("cause-scope").Changed {
		if err := checkText("--cause-scope", f.causeScope, idem.MaxScope); err != nil {
			return filter, err
		}
	}
	if !cmd.Flag("before").Changed {
		return filter, nil
	}
	return filter, f.older(cmd, &filter)
}

// older reads --before: a time, or, where tasks are listed, an id.
func (f tasksFlags) older(cmd *cobra.Command, filter *admin.TaskFilter) error {
	listed := cmd.Flag("limit") != nil
	if id, err := strconv.ParseInt(f.before, 10, 64); err == nil && id > 0 && listed {
		filter.Before = id
		return nil
	}
	position, err := admin.ParsePosition(f.before)
	if err != nil || position.Key != "" {
		if listed {
			return usagef("--before is neither a time like 2026-01-31T12:00:00Z nor the id of a task")
		}
		return usagef("--before is not a time like 2026-01-31T12:00:00Z")
	}
	filter.CreatedBefore = position.CreatedAt
	return nil
}

func (e env) tasksList(ctx context.Context, db *idem.DB, cmd *cobra.Command, filter admin.TaskFilter) error {
	tasks, err := admin.ListTasks(ctx, db, filter)
	if err != nil {
		return err
	}
	var next int64
	if len(tasks) == filter.Limit {
		next = tasks[len(tasks)-1].ID
	}
	if asJSON(cmd) {
		return e.writeJSON(struct {
			Tasks []taskJSON `json:"tasks"`
			Next  int64      `json:"next,omitempty"`
		}{tasksJSON(tasks), next})
	}
	if len(tasks) == 0 {
		e.note("no tasks")
		return nil
	}
	if err := e.writeTable(taskRows(tasks, e.painter(cmd))); err != nil {
		return err
	}
	if next != 0 {
		e.note("there may be more: --before %d", next)
	}
	return nil
}

// taskRows are the lines of the list. Every cell of a column is painted, so that the
// columns stay aligned.
func taskRows(tasks []admin.Task, paint func(color, string) string) [][]string {
	rows := [][]string{{"ID", "QUEUE", "KIND", "KEY", paint(plain, "STATUS"), "ATTEMPTS", "CAUSE", "CREATED", "UPDATED", "LAST ERROR"}}
	for _, t := range tasks {
		rows = append(rows, []string{
			strconv.FormatInt(t.ID, 10), printable(t.Queue), printable(t.Kind), orDash(t.Key), paint(taskColor(t), taskText(t)),
			attemptsText(t), orDash(t.Cause.Key), moment(t.CreatedAt), moment(t.UpdatedAt), firstLine(t.LastError),
		})
	}
	return rows
}
