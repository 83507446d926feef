package main

import (
	"math/rand/v2"
	"time"

	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/storm"
	"github.com/spf13/cobra"
)

// demoOptions is what the flags of idem demo say.
type demoOptions struct {
	databaseURL string // empty: an embedded PostgreSQL
	dataDir     string
	listen      string
	intents     int
	seed        uint64
	exit        bool
	faults      bool
	profile     string
	yes         bool
	json        bool
}

func newDemoCommand(e env) *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "A shop under a storm of repeats, and what came of it",
		Long: `Starts a PostgreSQL of its own, the schema, the demo's shop and a bank, drives a
storm, prints what came of it, and stays up.

The storm has two more shops on the same database and several client processes,
with a network between them that cuts, delays and repeats. Every order is made
and then paid for, some from two keys at once. Every shop is a worker, too: by
tasks they send a receipt for each order and refund some of the payments. Shops,
clients and the bank are killed with SIGKILL meanwhile and started again. Every
order also goes to an endpoint without the guard. In the end every intent must
have one outcome, and an answer that says so, the bank one charge for each order
and one refund for each that was asked for, and no task may be left or have been
applied twice: what only the bank knows is settled by its record.

The shop serves /metrics for Prometheus, with what the storm's shops did, too:
docs/watching.md says what to ask.

The environment is ignored: a storm must not hit a database by accident. With
--exit it leaves after the storm: exit code 0 if the proof holds, 5 if not.`,
		Example: `  idem demo
  idem demo --storm 1000 --exit
  idem demo --storm 0 --faults --data-dir ./shop-data
  idem demo --database-url postgres://me@localhost/empty`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.json = asJSON(cmd)
			if !cmd.Flags().Changed("seed") {
				o.seed = uint64(rand.Uint32()) // short enough to be typed, and exact in every JSON reader
			} else if o.intents == 0 {
				return usagef("--seed needs a storm; leave out --storm 0")
			}
			if cmd.Flags().Changed("database-url") && o.databaseURL == "" {
				return usagef("the database URL in --database-url is empty; leave the flag out for an embedded PostgreSQL")
			}
			if cmd.Flags().Changed("data-dir") && o.dataDir == "" {
				return usagef("--data-dir is empty; name a DIR, or leave it out for a directory that is removed in the end")
			}
			if err := o.check(); err != nil {
				return err
			}
			return e.demo(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.databaseURL, "database-url", "", "PostgreSQL at `URL` instead of an embedded one; the environment is ignored")
	f.StringVar(&o.dataDir, "data-dir", "", "keep the embedded PostgreSQL's data and the bank's log in `DIR`")
	f.StringVar(&o.listen, "listen", "127.0.0.1:8000", "`ADDR` of the shop")
	f.IntVar(&o.intents, "storm", 200, "`N` orders that the storm means and pays for, each sent many times; 0 for no storm")
	f.Uint64Var(&o.seed, "seed", 0, "repeat the plan of the storm that printed seed `N`: what is sent, who is killed\n"+
		"when, what the network does; not the machine's timing (default random)")
	f.BoolVar(&o.exit, "exit", false, "leave after the storm: exit code 0 if the proof holds, 5 if not")
	f.BoolVar(&o.faults, "faults", false, "obey X-Demo-Delay and X-Demo-Fail, which make trouble on purpose")
	f.StringVar(&o.profile, "profile", string(idemhttp.Article), "statuses that clients see, `NAME` is article or ietf")
	f.BoolVar(&o.yes, "yes", false, "use a database that has other tables, too")
	return cmd
}

// check finds flags that are wrong or contradict each other.
func (o demoOptions) check() error {
	switch {
	case o.intents < 0 || o.intents > storm.MaxIntents:
		return usagef("--storm is %d; it must be from 0 to %d", o.intents, storm.MaxIntents)
	case o.exit && o.intents == 0:
		return usagef("--exit leaves after the storm, and --storm 0 asks for none; leave out one of them")
	case o.dataDir != "" && o.databaseURL != "":
		return usagef("--data-dir is for the embedded PostgreSQL, and --database-url asks for another; leave out one of them")
	case o.yes && o.databaseURL == "":
		return usagef("--yes is for a database of --database-url; leave it out")
	case o.profile != string(idemhttp.Article) && o.profile != string(idemhttp.IETF):
		return usagef("--profile is %q; it must be %s or %s", o.profile, idemhttp.Article, idemhttp.IETF)
	}
	return nil
}

const (
	// demoConnections is what the shop on --listen may use; the storm's have their
	// own.
	demoConnections = 10
	// demoReadyLimit bounds how long a database may take to be prepared.
	demoReadyLimit = time.Minute
)
