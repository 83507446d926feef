package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/admin"
	"github.com/spf13/cobra"
)

func newKeysReleaseCommand(e env) *cobra.Command {
	var r admin.Release
	var yes bool
	cmd := &cobra.Command{
		Use:   "release KEY",
		Short: "Forget a remembered refusal or an abandoned claim",
		Long: `Forgets a remembered refusal whose request changed nothing, or a claim that its
process has abandoned: the next request with the key runs as new. Refused (exit code
4) for a key whose request committed something or may have, whose answer is withheld
or expired, that is in flight, with an effect that is not absent, or with a task that
is done or will run. Who released it
and why is written down in the audit: idem why shows it.`,
		Example: `  idem keys release order-17 --scope alice --reason 'slot was freed, ticket 4711' --yes
  idem keys release order-17 --scope alice --reason 'wrong limit' --actor carol --yes --json`,
		Args: arguments(1, "one KEY"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if r.Key, err = keyArgument(args[0]); err != nil {
				return err
			}
			if !cmd.Flag("actor").Changed {
				r.Actor = whoRuns()
			}
			if err := checkRelease(cmd, r, yes); err != nil {
				return err
			}
			return e.withDB(cmd, func(ctx context.Context, db *idem.DB) error {
				return e.keysRelease(ctx, db, r, asJSON(cmd))
			})
		},
	}
	cmd.Flags().StringVar(&r.Scope, "scope", "", "whose key (required)")
	cmd.Flags().StringVar(&r.Reason, "reason", "", "why, for whoever reads the audit (required)")
	cmd.Flags().StringVar(&r.Actor, "actor", "", "who does this; else the system's user at this host")
	cmd.Flags().BoolVar(&yes, "yes", false, "do it: what is remembered is forgotten for good (required)")
	return cmd
}

// checkRelease tells what the command line lacks before any database work.
func checkRelease(cmd *cobra.Command, r admin.Release, yes bool) error {
	if r.Scope == "" {
		return usagef("keys release needs --scope: whose key is it?")
	}
	err := cmp.Or(checkScope(r.Scope), checkBy(cmd, admin.By{Actor: r.Actor, Reason: r.Reason}))
	if err == nil && !yes {
		return usagef("keys release forgets for good; add --yes")
	}
	return err
}

// whoRuns is the user that runs this program, at this host; empty if the system
// does not say.
func whoRuns() string {
	current, err := user.Current()
	if err != nil || current.Username == "" {
		return ""
	}
	host, err := os.Hostname()
	if err != nil {
		return current.Username
	}
	return current.Username + "@" + host
}

func (e env) keysRelease(ctx context.Context, db *idem.DB, r admin.Release, asJSON bool) error {
	if err := admin.Writable(ctx, db.Pool()); err != nil {
		return err
	}
	change, err := admin.ReleaseKey(ctx, db, r)
	switch {
	case errors.Is(err, admin.ErrNotFound):
		return exitf(exitNotFound, "the scope %s does not remember the key %s; a request with it runs as new", printable(r.Scope), printable(r.Key))
	case errors.Is(err, admin.ErrRefused):
		return exitf(exitRefused, "refused: %s", refusalText(err, r))
	case err != nil:
		return err
	}
	if asJSON {
		return e.writeJSON(newChangeJSON(change))
	}
	return e.write(fmt.Sprintf("released %s of %s; the next request with it runs as new\n", printable(r.Key), printable(r.Scope)))
}

// refusals say why a key is not released, and what to do.
var refusals = [...]struct {
	err  error
	text string
}{
	{admin.ErrInFlight, "%s of %s is in flight; wait until it has ended"},
	{admin.ErrCommitted, "what the request of %s of %s wrote is committed; a second run would do it again"},
	{admin.ErrUndecided, "whether the request of %s of %s committed anything is not known; a second run might do it again"},
	{admin.ErrWithheld, "the request of %s of %s was carried out, and its answer was too large to store"},
	{admin.ErrEffects, "an effect of the request of %s of %s is not absent; idem why tells which, and whether a retry goes on with it"},
	{admin.ErrTasks, "a task that the request of %s of %s has caused is done, or will run; idem why tells which"},
	{admin.ErrExpired, "the time of the answer of %s of %s is over; there is no refusal to release"},
}

func refusalText(err error, r admin.Release) string {
	text := ""
	for _, refusal := range refusals {
		if errors.Is(err, refusal.err) {
			text = fmt.Sprintf(refusal.text, printable(r.Key), printable(r.Scope))
			break
		}
	}
	return cmp.Or(text, err.Error())
}
