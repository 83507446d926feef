package main

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/idem-go/idem/internal/shop/bank"
	"github.com/spf13/cobra"
)

// newDemoBankCommand is the demo's bank, which is a process of its own: this
// program again.
func newDemoBankCommand(e env) *cobra.Command {
	var cfg bank.Config
	var temporary bool
	cmd := &cobra.Command{
		Use:    "demo-bank",
		Hidden: true,
		Short:  "The bank of idem demo",
		Long: `The bank of idem demo, which starts it. It writes where it listens to stdout as a
line of JSON, and ends with its stdin.`,
		Example: `  idem demo-bank --log ./bank.log --listen 127.0.0.1:8001`,
		Args:    noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.Log == "" {
				return usagef("demo-bank needs --log: where are the charges remembered?")
			}
			cfg.Logger = slog.New(slog.NewTextHandler(e.stderr, nil))
			err := bank.Child(cmd.Context(), e.stdin, e.stdout, cfg)
			if temporary {
				// Also when who started it was killed. The directory goes if it is empty.
				err = errors.Join(err, os.Remove(cfg.Log))
				_ = os.Remove(filepath.Dir(cfg.Log))
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.Log, "log", "", "the durable log is `FILE`, which is made if it is not there")
	f.BoolVar(&temporary, "temporary", false, "remove the log at the end, and its directory if it is empty then")
	f.StringVar(&cfg.Listen, "listen", "127.0.0.1:0", "loopback `ADDR` to listen on")
	f.DurationVar(&cfg.Slow, "slow", bank.DefaultSlow, "how long tok_slow takes")
	f.Int64Var(&cfg.Faults.DelayBefore, "delay-before-ms", 0, "wait `MS` before a charge is committed")
	f.Int64Var(&cfg.Faults.DelayAfter, "delay-after-ms", 0, "wait `MS` after it, before the reply")
	f.Int64Var(&cfg.Faults.LoseReplies, "lose-replies", 0, "hang up instead of the next `N` replies that tell of a charge")
	return cmd
}
