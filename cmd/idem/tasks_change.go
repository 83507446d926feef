package main

import (
	"context"
	"fmt"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/admin"
	"github.com/idem-go/idem/queue"
	"github.com/spf13/cobra"
)

// tasksChange is a command that changes one task, or all that match a filter.
type tasksChange struct {
	e     env
	verb  string // retry or cancel
	which []queue.Status
	// destroys reports that also one task needs --yes.
	destroys bool
	one      func(ctx context.Context, db *idem.DB, t admin.Task, by admin.By) (admin.Change, string, error)
	count    func(context.Context, *idem.DB, admin.TaskFilter) (int64, error)
	all      func(context.Context, *idem.DB, admin.TaskFilter, admin.By, func(admin.TaskTotals)) (admin.TaskTotals, error)
	totals   func(admin.TaskTotals) (any, string)
}

// tasksChangeFlags are its flags.
type tasksChangeFlags struct {
	tasksFlags
	by       admin.By
	all, yes bool
}

func newTasksRetryCommand(e env) *cobra.Command {
	return tasksChange{
		e: e, verb: "retry", which: []queue.Status{queue.StatusFailed, queue.StatusCancelled},
		one: func(ctx context.Context, db *idem.DB, t admin.Task, by admin.By) (admin.Change, string, error) {
			change, err := admin.RetryTask(ctx, db, t.ID, by)
			return change, "retried " + taskName(t) + ": it is pending, with all its attempts", err
		},
		count: admin.CountRetryable, all: admin.RetryTasks, totals: retryTotals,
	}.command(&cobra.Command{
		Use:   "retry [ID|KEY]",
		Short: "Make failed or cancelled tasks pending again",
		Long: `Makes a failed or a cancelled task pending again, due at once and with all its attempts,
or, without a task, all failed ones that match the flags (cancelled ones with --status
cancelled): their number is told, and --yes needed. What its attempts have come to so
far is kept. Refused (exit code 4) for a task that is done, which a second run would do
again, and for one that is not finished. What the task has applied is skipped; an effect
that is unknown is not called again by itself: settle it first (idem why ID). Who did it
and why is written down in the audit.`,
		Example: `  idem tasks retry 4711 --reason 'the printer is back'
  idem tasks retry receipt:17 --queue mail --reason 'the printer is back' --json
  idem tasks retry --kind receipt.send --reason 'the printer is back'        # how many?
  idem tasks retry --kind receipt.send --reason 'the printer is back' --yes`,
	})
}

func newTasksCancelCommand(e env) *cobra.Command {
	return tasksChange{
		e: e, verb: "cancel", which: []queue.Status{queue.StatusPending, queue.StatusRunning}, destroys: true,
		one: func(ctx context.Context, db *idem.DB, t admin.Task, by admin.By) (admin.Change, string, error) {
			change, asked, err := admin.CancelTask(ctx, db, t.ID, by)
			if asked {
				return change, fmt.Sprintf("asked for the cancellation of %s; idem tasks show %d tells what comes of it", taskName(t), t.ID), err
			}
			return change, "cancelled " + taskName(t), err
		},
		count: admin.CountCancellable, all: admin.CancelTasks, totals: cancelTotals,
	}.command(&cobra.Command{
		Use:   "cancel [ID|KEY]",
		Short: "Cancel tasks that are pending or running",
		Long: `Cancels a task that is pending, or asks for the cancellation of one that is running: its
handler's context ends, and no other attempt follows; what the handler finishes all the
same is done. Without a task: all that match the flags; their number is told. Refused
(exit code 4) for a task that is finished, and for a pending one that has called an
effect which is not settled: only its next attempt finds out what has become of that,
or settle it first (idem why ID). A running one is asked all the same; what it leaves
unsettled shows in idem effects list. Who did it and why is written down in the audit.`,
		Example: `  idem tasks cancel 4711 --reason 'ordered by mistake, ticket 4711' --yes
  idem tasks cancel --kind newsletter.send --reason 'wrong text'         # how many?
  idem tasks cancel --kind newsletter.send --reason 'wrong text' --yes
  idem tasks cancel --queue mail --status pending --before 2026-01-31T12:00:00Z --reason 'too late' --yes --json`,
	})
}

// command completes cmd.
func (c tasksChange) command(cmd *cobra.Command) *cobra.Command {
	var flags tasksChangeFlags
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return fmt.Errorf("%s takes one ID or KEY, or none; run %s --help", pathBelowRoot(cmd), cmd.CommandPath())
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !cmd.Flag("actor").Changed {
			flags.by.Actor = whoRuns()
		}
		filter, err := c.check(cmd, flags, args)
		if err != nil {
			return err
		}
		return c.e.withDB(cmd, func(ctx context.Context, db *idem.DB) error {
			if err := admin.Writable(ctx, db.Pool()); err != nil {
				return err
			}
			if len(args) == 1 {
				return c.changeOne(ctx, db, cmd, flags, args[0])
			}
			return c.changeAll(ctx, db, cmd, flags, filter)
		})
	}
	addTasksFlags(cmd, &flags.tasksFlags, c.which...)
	cmd.Flags().StringVar(&flags.before, "before", "", "only tasks that were enqueued before this time")
	cmd.Flags().BoolVar(&flags.all, "all", false, "all tasks, if no other flag chooses")
	addByFlags(cmd, &flags.by)
	what := "do it to all that match (required without a task)"
	if c.destroys {
		what = "do it (required)"
	}
	cmd.Flags().BoolVar(&flags.yes, "yes", false, what)
	return cmd
}

// addByFlags adds the flags that say who changes something, and why.
func addByFlags(cmd *cobra.Command, by *admin.By) {
	cmd.Flags().StringVar(&by.Reason, "reason", "", "why, for whoever reads the audit (required)")
	cmd.Flags().StringVar(&by.Actor, "actor", "", "who does this; else the system's user at this host")
}

// check tells what the command line lacks before any database work.
func (c tasksChange) check(cmd *cobra.Command, f tasksChangeFlags, args []string) (filter admin.TaskFilter, err error) {
	chosen := f.all
	for _, name := range []string{"kind", "status", "key", "cause", "cause-scope", "before", "all"} {
		if !cmd.Flag(name).Changed {
			continue
		}
		if chosen = true; len(args) == 1 {
			return filter, usagef("tasks %s takes a task or --%s, not both", c.verb, name)
		}
	}
	if filter, err = f.filter(cmd, c.which...); err != nil {
		return filter, err
	}
	if err := checkBy(cmd, f.by); err != nil {
		return filter, err
	}
	switch {
	case len(args) == 0 && !chosen && !cmd.Flag("queue").Changed:
		return filter, usagef("tasks %s takes an ID or KEY, or flags that choose tasks, or --all; run %s --help", c.verb, cmd.CommandPath())
	case len(args) == 1 && c.destroys && !f.yes:
		return filter, usagef("tasks %s needs --yes", c.verb)
	case len(args) == 1:
		return filter, checkTaskName(args[0])
	}
	return filter, nil
}

func (c tasksChange) changeOne(ctx context.Context, db *idem.DB, cmd *cobra.Command, f tasksChangeFlags, text string) error {
	task, err := findTask(ctx, db, f.queue, text)
	if err != nil {
		return err
	}
	change, told, err := c.one(ctx, db, task, f.by)
	if err != nil {
		return err
	}
	if task.Unsettled > 0 {
		e := "1 effect of it is"
		if task.Unsettled > 1 {
			e = fmt.Sprintf("%d effects of it are", task.Unsettled)
		}
		c.e.note("%s not settled; idem why %d tells what to do", e, task.ID)
	}
	if asJSON(cmd) {
		return c.e.writeJSON(newChangeJSON(change))
	}
	return c.e.write(told + "\n")
}

func (c tasksChange) changeAll(ctx context.Context, db *idem.DB, cmd *cobra.Command, f tasksChangeFlags, filter admin.TaskFilter) error {
	if !f.yes {
		n, err := c.count(ctx, db, filter)
		switch {
		case err != nil:
			return err
		case n > 0:
			return usagef("%s; add --yes to %s what can be", tasksMatch(n), c.verb)
		}
	}
	totals, err := c.all(ctx, db, filter, f.by, c.progress())
	if err != nil {
		if done := totals.Changed + totals.Asked; done > 0 {
			c.e.note("%d of %d were changed before this", done, totals.Matched)
		}
		return err
	}
	out, text := c.totals(totals)
	if asJSON(cmd) {
		return c.e.writeJSON(out)
	}
	return c.e.write(text + "\n")
}

// progress tells how many tasks match, and at each tenth of them how far it has come.
func (c tasksChange) progress() func(admin.TaskTotals) {
	told := int64(-1)
	return func(t admin.TaskTotals) {
		done := t.Changed + t.Asked + t.Left
		switch tenth := done * 10 / max(t.Matched, 1); {
		case done == 0:
			c.e.note("%s", tasksMatch(t.Matched))
		case tenth > told && done < t.Matched:
			told = tenth
			c.e.note("%d of %d", done, t.Matched)
		}
	}
}

func tasksMatch(n int64) string {
	switch n {
	case 0:
		return "no task matches"
	case 1:
		return "1 task matches"
	}
	return fmt.Sprintf("%d tasks match", n)
}

func retryTotals(t admin.TaskTotals) (any, string) {
	return struct {
		Matched int64 `json:"matched"`
		Retried int64 `json:"retried"`
		Left    int64 `json:"left"`
	}{t.Matched, t.Changed, t.Left}, fmt.Sprintf("retried %d of %d tasks", t.Changed, t.Matched) + leftText(t.Left)
}

func cancelTotals(t admin.TaskTotals) (any, string) {
	text := fmt.Sprintf("cancelled %d of %d tasks", t.Changed, t.Matched)
	if t.Asked > 0 {
		text += fmt.Sprintf(", asked for the cancellation of %d that are running", t.Asked)
	}
	return struct {
		Matched   int64 `json:"matched"`
		Cancelled int64 `json:"cancelled"`
		Asked     int64 `json:"asked"`
		Left      int64 `json:"left"`
	}{t.Matched, t.Changed, t.Asked, t.Left}, text + leftText(t.Left)
}

// leftText tells of tasks that were not changed.
func leftText(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %d left: an effect is not settled, or somebody else works on the task", n)
}
