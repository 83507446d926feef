package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/admin"
	"github.com/spf13/cobra"
)

func newSweepCommand(e env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sweep",
		Short: "Delete what has expired, once",
		Long: `Deletes keys and finished tasks whose time is over, strips the answers of keys that
are remembered longer, and forgets takes that nobody has ended, once. Safe beside
running programs and other sweeps. Where one of these tables cannot be swept the
others are: the counts say what was done, the exit code and stderr what was not.`,
		Example: `  idem sweep
  idem sweep --json`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.withDB(cmd, func(ctx context.Context, db *idem.DB) error {
				return e.sweep(ctx, db, asJSON(cmd))
			})
		},
	}
	addDatabaseFlags(cmd.Flags())
	return cmd
}

func (e env) sweep(ctx context.Context, db *idem.DB, asJSON bool) error {
	if err := admin.Writable(ctx, db.Pool()); err != nil {
		return err
	}
	swept, err := idem.Sweep(ctx, db)
	unwritten := e.writeSwept(swept, asJSON) // also beside an error: that much is done
	return cmp.Or(err, unwritten)
}

func (e env) writeSwept(swept idem.Swept, asJSON bool) error {
	if asJSON {
		return e.writeJSON(struct {
			Deleted  int64 `json:"deleted"`
			Stripped int64 `json:"stripped"`
			Tasks    int64 `json:"tasks"`
			Takes    int64 `json:"takes"`
		}{swept.Deleted, swept.Stripped, swept.Tasks, swept.Takes})
	}
	return e.write(fmt.Sprintf("deleted   %d\nstripped  %d\ntasks     %d\ntakes     %d\n", swept.Deleted, swept.Stripped, swept.Tasks, swept.Takes))
}
