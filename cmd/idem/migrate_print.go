package main

import (
	"strings"

	"github.com/idem-go/idem"
	"github.com/spf13/cobra"
)

func newMigratePrintCommand(e env) *cobra.Command {
	return &cobra.Command{
		Use:   "print",
		Short: "Print all migrations as SQL, for another migrator",
		Long: `Prints all migrations as SQL, in order, for another migrator. Each one writes down
that it has been applied. Needs no database.`,
		Example: "  idem migrate print > migrations/0007_idem.sql",
		Args:    noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON(cmd) {
				return e.printJSON()
			}
			return e.printSQL()
		},
	}
}

func (e env) printSQL() error {
	var all []string
	for _, m := range idem.Migrations() {
		all = append(all, strings.TrimSpace(m.SQL)+"\n")
	}
	return e.write(strings.Join(all, "\n"))
}

func (e env) printJSON() error {
	var all []migration
	for _, m := range idem.Migrations() {
		all = append(all, migration{Version: m.Version, Name: m.Name, SQL: m.SQL})
	}
	return e.writeJSON(struct {
		Migrations []migration `json:"migrations"`
	}{all})
}
