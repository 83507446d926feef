package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/admin"
	"github.com/idem-go/idem/queue"
	"github.com/spf13/cobra"
)

// enqueueFlags are the flags of idem tasks enqueue.
type enqueueFlags struct {
	key, payload string
	unkeyed      bool
	delay        time.Duration
	options      queue.Options
	by           admin.By
}

func newTasksEnqueueCommand(e env) *cobra.Command {
	var flags enqueueFlags
	cmd := &cobra.Command{
		Use:   "enqueue KIND",
		Short: "Enqueue one task",
		Long: `Enqueues one task, as the program does: a key that the queue remembers makes no second
one. The same kind and payload is a duplicate, which is told and no error; another is
refused (exit code 4). The payload is JSON; the spaces between its parts are taken out,
and the rest is compared with the bytes that are stored. The program reads both instead:
what it calls a duplicate may be refused here, for another order of members, or for
spaces that plain SQL has stored. What the program's kind says of its queue, priority,
attempts and retention is not known here: give it. Who did it and why is written down in
the audit.`,
		Example: `  idem tasks enqueue receipt.send --key receipt:17 --payload '{"order":17}' --reason 'lost in the fire, ticket 4711'
  idem tasks enqueue report.make --unkeyed --payload @report.json --queue reports --delay 1h --reason 'asked by Ms. Lind'
  idem tasks enqueue receipt.send --key receipt:18 --payload @- --priority 3 --reason 'ticket 4711' --json <receipt.json`,
		Args: arguments(1, "one KIND"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flag("actor").Changed {
				flags.by.Actor = whoRuns()
			}
			task, err := e.newTask(cmd, flags, args[0])
			if err != nil {
				return err
			}
			return e.withDB(cmd, func(ctx context.Context, db *idem.DB) error {
				return e.tasksEnqueue(ctx, db, cmd, task, flags.by)
			})
		},
	}
	cmd.Flags().StringVar(&flags.key, "key", "", "what the task is called within its queue")
	cmd.Flags().BoolVar(&flags.unkeyed, "unkeyed", false, "it has no key: enqueued again, it is another one")
	cmd.Flags().StringVar(&flags.payload, "payload", "", "what its handler gets: `JSON`, @FILE, or @- for stdin (required)")
	cmd.Flags().StringVar(&flags.options.Queue, "queue", queue.DefaultQueue, "the queue")
	cmd.Flags().DurationVar(&flags.delay, "delay", 0, "how long from now it is not due, such as 90s or 24h")
	cmd.Flags().IntVar(&flags.options.Priority, "priority", 0, fmt.Sprintf("%d to %d; the highest is taken first", queue.MinPriority, queue.MaxPriority))
	cmd.Flags().IntVar(&flags.options.MaxAttempts, "attempts", queue.DefaultMaxAttempts, "how often its handler is started at most")
	cmd.Flags().DurationVar(&flags.options.Retention, "retention", queue.DefaultRetention, "how long it and its key are remembered when it is done")
	addByFlags(cmd, &flags.by)
	return cmd
}

// newTask tells what the command line lacks before any database work.
func (e env) newTask(cmd *cobra.Command, f enqueueFlags, kind string) (admin.NewTask, error) {
	t := admin.NewTask{Kind: kind, Options: f.options, Key: f.key, Delay: f.delay}
	switch {
	case cmd.Flag("key").Changed == f.unkeyed:
		return t, usagef("tasks enqueue needs either --key or --unkeyed: may it be enqueued twice?")
	case !cmd.Flag("payload").Changed:
		return t, usagef("tasks enqueue needs --payload: what does its handler get? null if nothing")
	case f.unkeyed:
		t.Key = queue.Unkeyed
	}
	if err := cmp.Or(f.check(cmd, kind), checkBy(cmd, f.by)); err != nil {
		return t, err
	}
	var err error
	t.Payload, err = e.payloadFlag(f.payload)
	return t, err
}

// check finds values that no task can have.
func (f enqueueFlags) check(cmd *cobra.Command, kind string) error {
	return cmp.Or(
		checkWord("KIND", kind, queue.MaxName),
		checkFlags(cmd, queue.MaxKey, "key"),
		checkFlags(cmd, queue.MaxName, "queue"),
		checkDuration("--delay", f.delay, 0, queue.MaxDelay),
		checkRange("--priority", f.options.Priority, queue.MinPriority, queue.MaxPriority),
		checkRange("--attempts", f.options.MaxAttempts, 1, queue.MaxAttempts),
		checkDuration("--retention", f.options.Retention, time.Second, queue.MaxRetention))
}

// payloadFlag reads the value of --payload, or the file that it names, as Go would have
// written it.
func (e env) payloadFlag(value string) ([]byte, error) {
	payload, err := e.jsonFlag("--payload", value, queue.MaxPayload)
	if err != nil {
		return nil, err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, payload); err != nil {
		return nil, usagef(`--payload is not JSON (%w); write it in quotes, such as '{"order":17}', or @FILE, or null if the handler gets nothing`, err)
	}
	return compact.Bytes(), nil
}

func (e env) tasksEnqueue(ctx context.Context, db *idem.DB, cmd *cobra.Command, t admin.NewTask, by admin.By) error {
	if err := admin.Writable(ctx, db.Pool()); err != nil {
		return err
	}
	told, err := admin.EnqueueTask(ctx, db, t, by)
	name := t.Options.Queue
	var other *queue.MismatchError
	switch {
	case errors.As(err, &other):
		return exitf(exitRefused, "refused: --key %s of %s is task %d already, of kind %s (%s), with another kind or payload; use another --key for another task",
			printable(other.Key), printable(name), other.ID, printable(other.Kind), other.Status)
	case err != nil:
		return err
	}
	if asJSON(cmd) {
		return e.writeJSON(struct {
			Outcome string `json:"outcome"`
			ID      int64  `json:"id"`
			Queue   string `json:"queue"`
			Status  string `json:"status"`
		}{string(told.Outcome), told.ID, name, string(told.Status)})
	}
	if told.Outcome == queue.Duplicate {
		return e.write(fmt.Sprintf("duplicate: %s of %s is task %d already, %s; nothing was enqueued\n", printable(t.Key), printable(name), told.ID, told.Status))
	}
	return e.write(fmt.Sprintf("enqueued task %d of %s, %s\n", told.ID, printable(name), told.Status))
}
