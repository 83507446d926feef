package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/admin"
	"github.com/spf13/cobra"
)

func newEffectsShowCommand(e env) *cobra.Command {
	var scope string
	var result bool
	cmd := &cobra.Command{
		Use:   "show KEY",
		Short: "All that is known of one effect",
		Long: `Shows what is known of one effect, by its key or by its downstream key: what came of
it, what it was caused by, and what was done to it by hand. The result may hold what
only the caller may see: it is shown with --result.`,
		Example: `  idem effects show charge:payment:17
  idem effects show charge:payment:17 --scope shop --result --json`,
		Args: arguments(1, "one KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkEffectName(cmd, scope, args[0]); err != nil {
				return err
			}
			return e.withDB(cmd, func(ctx context.Context, db *idem.DB) error {
				effect, err := findEffect(ctx, db, scope, args[0])
				if err != nil {
					return err
				}
				return e.writeEffect(ctx, db, cmd, effect, result)
			})
		},
	}
	cmd.Flags().StringVar(&scope, "scope", "", "whose effect; needed if several scopes have it")
	cmd.Flags().BoolVar(&result, "result", false, "show the recorded result, too")
	return cmd
}

// checkEffectName checks scope and key of an effect before any database work.
func checkEffectName(cmd *cobra.Command, scope, key string) error {
	return cmp.Or(checkGivenScope(cmd, scope), checkWord("KEY", key, idem.MaxEffectKey))
}

// findEffect finds the effect of a key, or of a downstream key, in the scope, or in
// the only one that has it.
func findEffect(ctx context.Context, db *idem.DB, scope, key string) (admin.Effect, error) {
	found, err := effectsNamed(ctx, db, scope, key)
	switch {
	case err != nil:
		return admin.Effect{}, err
	case len(found) == 0 && scope == "":
		return admin.Effect{}, exitf(exitNotFound, "no scope has the effect %s: it was never started", printable(key))
	case len(found) == 0:
		return admin.Effect{}, exitf(exitNotFound, "the scope %s has no effect %s: it was never started", printable(scope), printable(key))
	case len(found) > 1:
		return admin.Effect{}, usagef("several scopes have the effect %s; add --scope: %s", printable(key), scopeNames(scopesOfEffects(found)))
	}
	effect, err := admin.ShowEffect(ctx, db, found[0].Scope, found[0].Key)
	if errors.Is(err, admin.ErrNoEffect) {
		return effect, exitf(exitNotFound, "the effect %s has just been removed", printable(key))
	}
	return effect, err
}

// effectsNamed are the effects of a key or a downstream key, in the scope if one is
// given.
func effectsNamed(ctx context.Context, db *idem.DB, scope, key string) ([]admin.Effect, error) {
	all, err := admin.FindEffects(ctx, db, key)
	if err != nil || scope == "" {
		return all, err
	}
	var found []admin.Effect
	for _, effect := range all {
		if effect.Scope == scope {
			found = append(found, effect)
		}
	}
	return found, nil
}

func scopesOfEffects(found []admin.Effect) []string {
	scopes := make([]string, len(found))
	for i, effect := range found {
		scopes[i] = effect.Scope
	}
	return scopes
}

// writeEffect writes one effect and what was done to it by hand, with its result if
// asked.
func (e env) writeEffect(ctx context.Context, db *idem.DB, cmd *cobra.Command, effect admin.Effect, result bool) error {
	audit, err := admin.EffectChanges(ctx, db, effect.Scope, effect.Key)
	if err != nil {
		return err
	}
	if asJSON(cmd) {
		out := newEffectJSON(effect)
		if result {
			out.Result = effect.Result
		}
		return e.writeJSON(struct {
			effectJSON
			Audit []changeJSON `json:"audit"`
		}{out, changesJSON(audit)})
	}
	if err := e.writeTable(effectDetails(effect, e.painter(cmd))); err != nil {
		return err
	}
	if result && effect.Result != nil {
		if err := e.write("\n" + bodyText(effect.Result)); err != nil {
			return err
		}
	}
	return e.writeAudit(audit)
}

// effectDetails are the lines of idem effects show: a name and a value each.
func effectDetails(e admin.Effect, paint func(color, string) string) [][]string {
	rows := [][]string{
		{"scope", printable(e.Scope)},
		{"effect", printable(e.Key)},
		{"status", paint(statusColor(e), effectText(e))},
		{"caused by", intentText(e.Cause)},
	}
	add := func(name, value string) { rows = append(rows, []string{name, value}) }
	if e.Owner != e.Cause && e.Owner.Door != "" {
		add("last called by", intentText(e.Owner))
	}
	if e.DownstreamKey != "" {
		add("downstream key", printable(e.DownstreamKey))
		add("calls", strconv.Itoa(e.Calls))
	}
	if !e.IntendedAt.IsZero() {
		add("intended", moment(e.IntendedAt))
		add("last call", callText(e))
		add("key honoured", keyedText(e))
	}
	if e.LastError != "" {
		add("last error", printable(e.LastError))
	}
	if e.Input != nil {
		add("input", hex.EncodeToString(e.Input))
	}
	if e.Status == admin.StatusApplied {
		add("result", fmt.Sprintf("%d bytes", e.ResultBytes))
	}
	add("created", moment(e.CreatedAt))
	add("updated", moment(e.UpdatedAt))
	return rows
}

// callText says until when the last call may be carried out by the other side.
func callText(e admin.Effect) string {
	if e.Calling {
		return "may be under way until " + moment(e.CallUntil)
	}
	return "can not be under way since " + moment(e.CallUntil)
}

// keyedText says what the other side promises of the downstream key.
func keyedText(e admin.Effect) string {
	switch {
	case e.KeyedUntil.IsZero():
		return "not by the other side"
	case e.Within:
		return "until " + moment(e.KeyedUntil)
	default:
		return "until " + moment(e.KeyedUntil) + ", which is over"
	}
}
