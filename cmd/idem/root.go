package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// env is what a command gets from the outside, so that a test can give it
// something else.
type env struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
}

// run executes one command line and returns its exit code. It has ended all it
// started when it returns; the end of ctx (a signal) makes it return early.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, getenv func(string) string) int {
	e := env{stdin: stdin, stdout: stdout, stderr: stderr, getenv: getenv}
	started := false
	root := newRootCommand(e)
	noteStart(root, &started)
	// Never nil: cobra would read os.Args instead.
	root.SetArgs(append([]string{}, args...))
	err := root.ExecuteContext(ctx)
	if err != nil && !started {
		err = usageError(err)
	}
	return report(ctx, stderr, err)
}

// newRootCommand builds the whole tree of commands.
func newRootCommand(e env) *cobra.Command {
	root := newGroup(&cobra.Command{
		Use:   "idem",
		Short: "The same result, every retry",
		Long:  "Idem makes repeats harmless: the same result, every retry.",
		Example: `  idem demo                    # a shop on a PostgreSQL of its own, under a storm of repeats
  idem migrate up              # the schema, in the database of DATABASE_URL
  idem why KEY                 # the story of one key: retry? a new key? the money?
  idem keys list --limit 20    # what is remembered, newest first
  idem tasks list --status failed      # dead letters: idem tasks retry
  idem effects list --status unknown   # what nobody knows of, to be settled
  idem check                   # every invariant; exit code 5 if one is broken`,
		SilenceErrors: true,
		SilenceUsage:  true,
	})
	root.SetIn(e.stdin)
	root.SetOut(e.stdout)
	root.SetErr(e.stderr)
	root.SetHelpTemplate(helpTemplate)
	root.SetUsageTemplate(helpTemplate)
	root.SetFlagErrorFunc(flagFault)
	root.PersistentFlags().Bool("json", false, "write data as JSON")
	root.PersistentFlags().Bool("no-color", false, "no colour, also on a terminal (as NO_COLOR)")
	setVersion(root)
	root.AddCommand(
		newDemoCommand(e),
		newMigrateCommand(e),
		newWhyCommand(e),
		newKeysCommand(e),
		newTasksCommand(e),
		newEffectsCommand(e),
		newSweepCommand(e),
		newCheckCommand(e),
		newVersionCommand(e),
		newDemoShopCommand(e),
		newDemoClientCommand(e),
		newDemoBankCommand(e),
	)
	root.SetHelpCommand(newHelpCommand())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	groupCompletion(root)
	return root
}

// noteStart makes every command below cmd set *started when it runs: an error
// that cobra returns before that is about the command line.
func noteStart(cmd *cobra.Command, started *bool) {
	if body := cmd.RunE; body != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			*started = true
			return body(cmd, args)
		}
	}
	for _, child := range cmd.Commands() {
		noteStart(child, started)
	}
}

// asJSON reports whether the command line asks for JSON. Every command knows
// the flag, since the root has it.
func asJSON(cmd *cobra.Command) bool {
	on, err := cmd.Flags().GetBool("json")
	if err != nil {
		panic(fmt.Sprintf("idem: %s has no --json flag", cmd.CommandPath()))
	}
	return on
}
