package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/admin"
	"github.com/spf13/cobra"
)

// settleFlags are the flags of idem effects settle.
type settleFlags struct {
	scope, result, reason, actor string
	calls                        int
	applied, absent              bool
	correct, yes                 bool
}

func newEffectsSettleCommand(e env) *cobra.Command {
	var flags settleFlags
	cmd := &cobra.Command{
		Use:   "settle KEY",
		Short: "Decide, by evidence, what has become of an unknown effect",
		Long: `Decides what has become of an effect that is unknown, or that was left by a process
which is gone. Ask the other side first, by the downstream key. --applied: it was
done; every later call returns the result, which is what the program's call would
have returned. --absent: it was not done, and the next retry calls. --calls says how many
calls the effect had when you asked, as idem effects show tells: the other side can have
said nothing of a later one. Always give it.

Refused (exit code 4) for an effect that is settled, whose request or task is alive, whose
last call may still be under way, or that was called again since --calls; only the result
that a person has given is replaced, by --correct. Who settled it and why is written down
in the audit.`,
		Example: `  idem effects settle charge:payment:17 --scope shop --calls 1 --applied --result '{"id":"ch_51","status":"captured"}' --reason 'in their list, ticket 4711' --yes
  idem effects settle charge:payment:17 --scope shop --calls 1 --applied --result @charge.json --reason 'ticket 4711' --actor carol --yes
  idem effects settle charge:payment:17 --scope shop --calls 1 --absent --reason 'no such charge by 03:40, ticket 4711' --yes --json`,
		Args: arguments(1, "one KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flag("actor").Changed {
				flags.actor = whoRuns()
			}
			s, err := e.settlement(cmd, flags, args[0])
			if err != nil {
				return err
			}
			return e.withDB(cmd, func(ctx context.Context, db *idem.DB) error {
				return e.effectsSettle(ctx, db, s, asJSON(cmd))
			})
		},
	}
	cmd.Flags().StringVar(&flags.scope, "scope", "", "whose effect (required)")
	cmd.Flags().IntVar(&flags.calls, "calls", 0, "how many calls it had when you asked: `N`; refused if it was called since")
	cmd.Flags().BoolVar(&flags.applied, "applied", false, "it was done; needs --result")
	cmd.Flags().StringVar(&flags.result, "result", "", "what the call would have returned: `JSON`, @FILE, or @- for stdin")
	cmd.Flags().BoolVar(&flags.absent, "absent", false, "it was not done, with proof")
	cmd.Flags().BoolVar(&flags.correct, "correct", false, "with --applied: replace the result that a person has given before")
	cmd.Flags().StringVar(&flags.reason, "reason", "", "the evidence, for whoever reads the audit (required)")
	cmd.Flags().StringVar(&flags.actor, "actor", "", "who does this; else the system's user at this host")
	cmd.Flags().BoolVar(&flags.yes, "yes", false, "do it: what is settled stays so, but for --correct (required)")
	return cmd
}

// settlement tells what the command line lacks before any database work.
func (e env) settlement(cmd *cobra.Command, f settleFlags, key string) (admin.Settlement, error) {
	s := admin.Settlement{Scope: f.scope, Key: key, As: admin.StatusAbsent, Correct: f.correct, Calls: f.calls, Actor: f.actor, Reason: f.reason}
	given := cmd.Flag("result").Changed
	switch {
	case f.scope == "":
		return s, usagef("effects settle needs --scope: whose effect is it?")
	case f.applied == f.absent:
		return s, usagef("effects settle needs either --applied or --absent: was it done?")
	case f.applied && !given:
		return s, usagef("effects settle --applied needs --result: what would the call have returned? null if nothing")
	case f.absent && f.correct:
		return s, usagef("effects settle --correct needs --applied: only a result can be corrected")
	case f.absent && given:
		return s, usagef("effects settle --absent takes no --result: what was not done has none")
	case cmd.Flag("calls").Changed && f.calls < 1:
		return s, usagef("--calls is %d, it may be 1 or more: how many calls does idem effects show tell?", f.calls)
	}
	err := cmp.Or(checkWord("KEY", key, idem.MaxEffectKey), checkScope(f.scope), checkBy(cmd, admin.By{Actor: f.actor, Reason: f.reason}))
	switch {
	case err != nil:
		return s, err
	case !f.yes:
		return s, usagef("effects settle decides for good; add --yes")
	case f.absent:
		return s, nil
	}
	s.As = admin.StatusApplied
	s.Result, err = e.resultFlag(f.result)
	return s, err
}

// resultFlag reads the value of --result, or the file that it names.
func (e env) resultFlag(value string) (json.RawMessage, error) {
	result, err := e.jsonFlag("--result", value, idem.MaxResult)
	switch {
	case err != nil:
		return nil, err
	case !json.Valid(result):
		return nil, usagef("--result is not JSON; give what the program's call would have returned, null if that is nothing")
	}
	return result, nil
}

// jsonFlag reads the value of a flag that takes JSON, or the file that it names.
func (e env) jsonFlag(what, value string, most int64) ([]byte, error) {
	text := []byte(value)
	if name, isFile := strings.CutPrefix(value, "@"); isFile {
		if name == "" {
			return nil, usagef("%s is @ without the name of a file; write @FILE, or @- for stdin", what)
		}
		var err error
		if text, err = e.readBounded(name, most); err != nil {
			return nil, usagef("cannot read the file of %s: %w", what, err)
		}
	}
	switch {
	case int64(len(text)) > most:
		return nil, usagef("%s has more than %d bytes", what, most)
	case !utf8.Valid(text):
		return nil, usagef("%s is not UTF-8, which JSON has to be", what)
	}
	return text, nil
}

// readBounded reads a file, or stdin for -, as far as it may be long and one byte beyond.
func (e env) readBounded(name string, most int64) ([]byte, error) {
	from := e.stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		from = file
	}
	return io.ReadAll(io.LimitReader(from, most+1))
}

func (e env) effectsSettle(ctx context.Context, db *idem.DB, s admin.Settlement, asJSON bool) error {
	if err := admin.Writable(ctx, db.Pool()); err != nil {
		return err
	}
	change, err := admin.SettleEffect(ctx, db, s)
	switch {
	case errors.Is(err, admin.ErrNoEffect):
		return exitf(exitNotFound, "the scope %s has no effect %s: it was never started", printable(s.Scope), printable(s.Key))
	case err != nil:
		return err
	case asJSON:
		return e.writeJSON(newChangeJSON(change))
	case s.As == admin.StatusApplied:
		return e.write(fmt.Sprintf("settled %s of %s as applied; the next retry goes on with its result\n", printable(s.Key), printable(s.Scope)))
	}
	return e.write(fmt.Sprintf("settled %s of %s as absent; the next retry calls again, with the same downstream key\n", printable(s.Key), printable(s.Scope)))
}
