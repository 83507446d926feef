package main

import (
	"os"
	"os/exec"

	"github.com/idem-go/idem/internal/shop"
	"github.com/idem-go/idem/internal/storm"
	"github.com/spf13/cobra"
)

// demoChild makes the command of one of the storm's processes, which is this
// program again. What it has to know it is told on its stdin.
func demoChild(self string) func(role string) *exec.Cmd {
	return func(role string) *exec.Cmd { return exec.Command(self, "demo-"+role) }
}

// demoSelf is this program's own file.
func demoSelf() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", exitf(exitFailed, "the storm starts this program again and cannot find its file: %w", err)
	}
	return self, nil
}

func newDemoShopCommand(e env) *cobra.Command {
	return &cobra.Command{
		Use:     "demo-" + storm.RoleShop,
		Hidden:  true,
		Short:   "One of the shops in the storm of idem demo",
		Long:    "One of the shops in the storm of idem demo, which starts it and tells it what to do.",
		Example: "  idem demo",
		Args:    noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return storm.Shop(cmd.Context(), e.stdin, e.stdout, (*shop.Shop).Run)
		},
	}
}

func newDemoClientCommand(e env) *cobra.Command {
	return &cobra.Command{
		Use:     "demo-" + storm.RoleClient,
		Hidden:  true,
		Short:   "Some of the clients in the storm of idem demo",
		Long:    "Some of the clients in the storm of idem demo, which starts them and tells them what to do.",
		Example: "  idem demo",
		Args:    noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return storm.Client(cmd.Context(), e.stdin, e.stdout)
		},
	}
}
