package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/admin"
	"github.com/spf13/cobra"
)

// effectsListFlags are the flags of idem effects list.
type effectsListFlags struct {
	scope, status, before string
	limit                 int
}

func newEffectsListCommand(e env) *cobra.Command {
	var flags effectsListFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "The effects, newest first",
		Long: `Lists the effects, newest first. Those that are unknown wait for somebody who settles
them; one that is started has a call under way, or was left by its process. Effects
are never swept. Reads the whole table.`,
		Example: `  idem effects list --status unknown
  idem effects list --scope shop
  idem effects list --before 2026-01-31T12:00:00Z --limit 1000 --json`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := flags.filter(cmd)
			if err != nil {
				return err
			}
			return e.withDB(cmd, func(ctx context.Context, db *idem.DB) error {
				return e.effectsList(ctx, db, cmd, filter)
			})
		},
	}
	cmd.Flags().StringVar(&flags.scope, "scope", "", "only effects of this scope")
	cmd.Flags().StringVar(&flags.status, "status", "", "only effects with this status: started, applied, unknown or absent")
	cmd.Flags().StringVar(&flags.before, "before", "", "only older effects: a time, or the position that the list before ended with")
	cmd.Flags().IntVar(&flags.limit, "limit", admin.DefaultLimit, fmt.Sprintf("how many effects, 1 to %d", admin.MaxLimit))
	return cmd
}

// filter checks the flags before any database work; admin has the last word.
func (f effectsListFlags) filter(cmd *cobra.Command) (admin.EffectFilter, error) {
	filter := admin.EffectFilter{Scope: f.scope, Status: admin.Status(f.status), Limit: f.limit}
	if err := checkRange("--limit", f.limit, 1, admin.MaxLimit); err != nil {
		return filter, err
	}
	if cmd.Flag("status").Changed && !slices.Contains(admin.Statuses(), filter.Status) {
		return filter, usagef("--status is %q, it may be started, applied, unknown or absent", f.status)
	}
	if err := checkGivenScope(cmd, f.scope); err != nil {
		return filter, err
	}
	var err error
	filter.Before, err = positionFlag(cmd, f.before)
	return filter, err
}

func (e env) effectsList(ctx context.Context, db *idem.DB, cmd *cobra.Command, filter admin.EffectFilter) error {
	effects, err := admin.ListEffects(ctx, db, filter)
	if err != nil {
		return err
	}
	next := ""
	if len(effects) == filter.Limit {
		next = effects[len(effects)-1].Position().String()
	}
	if asJSON(cmd) {
		return e.writeEffectsJSON(effects, next)
	}
	if len(effects) == 0 {
		e.note("no effects")
		return nil
	}
	if err := e.writeTable(effectRows(effects, e.painter(cmd))); err != nil {
		return err
	}
	if next != "" {
		e.note("there may be more: --before %s", next)
	}
	return nil
}

func (e env) writeEffectsJSON(effects []admin.Effect, next string) error {
	return e.writeJSON(struct {
		Effects []effectJSON `json:"effects"`
		Next    string       `json:"next,omitempty"`
	}{effectsJSON(effects), next})
}

func effectsJSON(effects []admin.Effect) []effectJSON {
	list := make([]effectJSON, len(effects))
	for i, effect := range effects {
		list[i] = newEffectJSON(effect)
	}
	return list
}

// effectRows are the lines of the list. Every cell of a column is painted, so that
// the columns stay aligned.
func effectRows(effects []admin.Effect, paint func(color, string) string) [][]string {
	rows := [][]string{{"SCOPE", "EFFECT", paint(plain, "STATUS"), "CALLS", "CAUSE", "CREATED", "UPDATED"}}
	for _, e := range effects {
		rows = append(rows, []string{
			printable(e.Scope), printable(e.Key), paint(statusColor(e), effectText(e)), strconv.Itoa(e.Calls),
			orDash(e.Cause.Key), moment(e.CreatedAt), moment(e.UpdatedAt),
		})
	}
	return rows
}
