package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/admin"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"
)

func newMigrateCommand(e env) *cobra.Command {
	cmd := newGroup(&cobra.Command{
		Use:   "migrate",
		Short: "The schema: apply, compare, print",
		Example: `  idem migrate up
  idem migrate status --json
  idem migrate print > migrations/0007_idem.sql`,
	})
	addDatabaseFlags(cmd.PersistentFlags())
	cmd.AddCommand(newMigrateUpCommand(e), newMigrateStatusCommand(e), newMigratePrintCommand(e))
	return cmd
}

// migration is one migration as JSON shows it.
type migration struct {
	Version int    `json:"version"`
	Name    string `json:"name"`
	SQL     string `json:"sql,omitempty"`
}

func newMigrateUpCommand(e env) *cobra.Command {
	return &cobra.Command{
		Use:   "up",
		Short: "Apply the migrations that the database lacks",
		Long:  "Applies the migrations that the database lacks. Safe to run from many processes at once.",
		Example: `  idem migrate up
  idem migrate up --database-url postgres://app@db.example/shop`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.withPool(cmd, func(ctx context.Context, pool *pgxpool.Pool) error {
				return e.migrateUp(ctx, pool, asJSON(cmd))
			})
		},
	}
}

func (e env) migrateUp(ctx context.Context, pool *pgxpool.Pool, asJSON bool) error {
	version, err := idem.SchemaVersion(ctx, pool)
	if err != nil {
		return err
	}
	// A standby that is up to date has nothing to be refused.
	if version < programVersion() {
		if err := admin.Writable(ctx, pool); err != nil {
			return err
		}
	}
	applied, err := idem.Migrate(ctx, pool)
	if err != nil {
		return err
	}
	return e.writeApplied(applied, asJSON)
}

func (e env) writeApplied(applied []idem.Migration, asJSON bool) error {
	if asJSON {
		return e.writeJSON(struct {
			Version int         `json:"version"`
			Applied []migration `json:"applied"`
		}{programVersion(), withoutSQL(applied)})
	}
	if len(applied) == 0 {
		e.note("nothing to apply; the schema is at version %d", programVersion())
		return nil
	}
	var text strings.Builder
	for _, m := range applied {
		fmt.Fprintf(&text, "applied %d %s\n", m.Version, m.Name)
	}
	return e.write(text.String())
}

func withoutSQL(all []idem.Migration) []migration {
	short := make([]migration, len(all))
	for i, m := range all {
		short[i] = migration{Version: m.Version, Name: m.Name}
	}
	return short
}

func newMigrateStatusCommand(e env) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Compare the database's schema with this program's",
		Long:  "Compares the database's schema with this program's: exit code 0 if they are equal, else 1.",
		Example: `  idem migrate status
  idem migrate status >/dev/null 2>&1 || idem migrate up`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.withPool(cmd, func(ctx context.Context, pool *pgxpool.Pool) error {
				version, err := idem.SchemaVersion(ctx, pool)
				if err != nil {
					return err
				}
				return e.writeStatus(cmd, version)
			})
		},
	}
}

// writeStatus writes both versions and fails unless they are equal.
func (e env) writeStatus(cmd *cobra.Command, database int) error {
	program := programVersion()
	state, shade, err := compareVersions(database, program)
	if asJSON(cmd) {
		if writeErr := e.writeJSON(struct {
			Database int    `json:"database"`
			Program  int    `json:"program"`
			State    string `json:"state"`
		}{database, program, state}); writeErr != nil {
			return writeErr
		}
		return err
	}
	paint := e.painter(cmd)
	if writeErr := e.write(fmt.Sprintf("database  %d\nprogram   %d\nstate     %s\n",
		database, program, paint(shade, state))); writeErr != nil {
		return writeErr
	}
	return err
}

// compareVersions names how the database's version stands to the program's, and
// says what to do unless they are equal.
func compareVersions(database, program int) (state string, shade color, err error) {
	switch {
	case database == program:
		return "current", green, nil
	case database == 0:
		return "absent", yellow, exitf(exitFailed, notMigrated)
	case database < program:
		return "behind", yellow, exitf(exitFailed, "the database's schema is at version %d, this program needs %d; run idem migrate up", database, program)
	default:
		return "newer", red, exitf(exitFailed, "the database's schema is at version %d, this program knows up to %d; install a newer idem", database, program)
	}
}
