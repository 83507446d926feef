package main

import (
	"context"
	"fmt"

	"github.com/idem-go/idem"
	"github.com/spf13/cobra"
)

func newCheckCommand(e env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check every invariant; exit code 5 if one is broken",
		Long: `Checks every invariant in one snapshot; may run on a live system. One line per
violation goes to stdout: invariant, table, row, what is wrong. Exit code 5 if
there is one.`,
		Example: `  idem check
  idem check --json`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.withDB(cmd, func(ctx context.Context, db *idem.DB) error {
				return e.check(ctx, db, cmd)
			})
		},
	}
	addDatabaseFlags(cmd.Flags())
	return cmd
}

// violation is one broken invariant as JSON shows it.
type violation struct {
	Invariant string `json:"invariant"`
	Table     string `json:"table"`
	Row       string `json:"row"`
	Detail    string `json:"detail"`
}

// check writes violations as they are found, so that a long check shows them
// before it ends; JSON is one value and comes at the end.
func (e env) check(ctx context.Context, db *idem.DB, cmd *cobra.Command) error {
	all := []violation{}
	paint := e.painter(cmd)
	for v, err := range idem.Check(ctx, db) {
		if err != nil {
			return err
		}
		all = append(all, violation(v))
		if asJSON(cmd) {
			continue
		}
		line := fmt.Sprintf("%s %s %s: %s\n", paint(red, v.Invariant), v.Table, printable(v.Row), printable(v.Detail))
		if err := e.write(line); err != nil {
			return err
		}
	}
	if asJSON(cmd) {
		if err := e.writeJSON(struct {
			Violations []violation `json:"violations"`
		}{all}); err != nil {
			return err
		}
	}
	return e.verdict(len(all))
}

// verdict says on stderr what a script reads from the exit code.
func (e env) verdict(broken int) error {
	switch broken {
	case 0:
		e.note("every invariant holds")
		return nil
	case 1:
		return exitf(exitCheck, "1 row breaks an invariant")
	default:
		return exitf(exitCheck, "%d rows break an invariant", broken)
	}
}
