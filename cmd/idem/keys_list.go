package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/admin"
	"github.com/spf13/cobra"
)

// keysListFlags are the flags of idem keys list.
type keysListFlags struct {
	scope, state, before string
	limit                int
}

func newKeysListCommand(e env) *cobra.Command {
	var flags keysListFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "The remembered keys, newest first",
		Long: `Lists the remembered keys, newest first, also those whose time is over until they
are swept. Reads the whole table.`,
		Example: `  idem keys list
  idem keys list --scope alice --state unknown
  idem keys list --before 2026-01-31T12:00:00Z --limit 1000 --json`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := flags.filter(cmd)
			if err != nil {
				return err
			}
			return e.withDB(cmd, func(ctx context.Context, db *idem.DB) error {
				return e.keysList(ctx, db, cmd, filter)
			})
		},
	}
	cmd.Flags().StringVar(&flags.scope, "scope", "", "only keys of this scope")
	cmd.Flags().StringVar(&flags.state, "state", "", "only keys in this state: claimed, answered, withheld, unknown or tombstone")
	cmd.Flags().StringVar(&flags.before, "before", "", "only older keys: a time, or the position that the list before ended with")
	cmd.Flags().IntVar(&flags.limit, "limit", admin.DefaultLimit, fmt.Sprintf("how many keys, 1 to %d", admin.MaxLimit))
	return cmd
}

// filter checks the flags before any database work; admin has the last word.
func (f keysListFlags) filter(cmd *cobra.Command) (admin.KeyFilter, error) {
	filter := admin.KeyFilter{Scope: f.scope, State: admin.State(f.state), Limit: f.limit}
	if err := checkRange("--limit", f.limit, 1, admin.MaxLimit); err != nil {
		return filter, err
	}
	if cmd.Flag("state").Changed && !isState(f.state) {
		return filter, usagef("--state is %q, it may be claimed, answered, withheld, unknown or tombstone", f.state)
	}
	if err := checkGivenScope(cmd, f.scope); err != nil {
		return filter, err
	}
	var err error
	filter.Before, err = positionFlag(cmd, f.before)
	return filter, err
}

// positionFlag reads --before; without it a list begins at the newest.
func positionFlag(cmd *cobra.Command, text string) (admin.Position, error) {
	if !cmd.Flag("before").Changed {
		return admin.Position{}, nil
	}
	position, err := admin.ParsePosition(text)
	if err != nil {
		return position, usagef("--before is neither a time like 2026-01-31T12:00:00Z nor the position that a list ended with")
	}
	return position, nil
}

func isState(text string) bool {
	for _, state := range admin.States() {
		if text == string(state) {
			return true
		}
	}
	return false
}

func (e env) keysList(ctx context.Context, db *idem.DB, cmd *cobra.Command, filter admin.KeyFilter) error {
	keys, err := admin.ListKeys(ctx, db, filter)
	if err != nil {
		return err
	}
	next := ""
	if len(keys) == filter.Limit {
		next = keys[len(keys)-1].Position().String()
	}
	if asJSON(cmd) {
		return e.writeKeysJSON(keys, next)
	}
	if len(keys) == 0 {
		e.note("no keys")
		return nil
	}
	if err := e.writeTable(keyRows(keys, e.painter(cmd))); err != nil {
		return err
	}
	if next != "" {
		e.note("there may be more: --before %s", next)
	}
	return nil
}

func (e env) writeKeysJSON(keys []admin.Key, next string) error {
	list := make([]keyJSON, len(keys))
	for i, k := range keys {
		list[i] = newKeyJSON(k)
	}
	return e.writeJSON(struct {
		Keys []keyJSON `json:"keys"`
		Next string    `json:"next,omitempty"`
	}{list, next})
}

// keyRows are the lines of the list. Every cell of a column is painted, so that
// the columns stay aligned.
func keyRows(keys []admin.Key, paint func(color, string) string) [][]string {
	rows := [][]string{{"SCOPE", "KEY", paint(plain, "STATE"), "STATUS", "CREATED", "EXPIRES"}}
	for _, k := range keys {
		rows = append(rows, []string{
			printable(k.Scope), printable(k.Key), paint(stateColor(k), stateText(k)),
			statusText(k.Status), moment(k.CreatedAt), moment(k.ExpiresAt),
		})
	}
	return rows
}

func statusText(status int) string {
	if status == 0 {
		return "-"
	}
	return strconv.Itoa(status)
}
