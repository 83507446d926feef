package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/idem-go/idem"
	"github.com/spf13/cobra"
)

// build is what this program is made of.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Schema   int    `json:"schema"`
}

func currentBuild() build {
	b := build{Version: "unknown", Go: runtime.Version(), Schema: programVersion()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			b.Revision = setting.Value
		case "vcs.modified":
			b.Modified = setting.Value == "true"
		}
	}
	return b
}

// String is the line of idem version.
func (b build) String() string {
	revision := ""
	if b.Revision != "" {
		revision = ", revision " + b.Revision
	}
	if b.Modified {
		revision += " with changes"
	}
	return fmt.Sprintf("idem %s (%s%s), schema %d", b.Version, b.Go, revision, b.Schema)
}

// programVersion is the version of the schema that this program needs.
func programVersion() int {
	version := 0
	for _, m := range idem.Migrations() {
		version = max(version, m.Version)
	}
	return version
}

// setVersion gives root the flag --version.
func setVersion(root *cobra.Command) {
	root.Version = currentBuild().String()
	root.SetVersionTemplate("{{.Version}}\n")
}

func newVersionCommand(e env) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "What this program is built from",
		Example: "  idem version --json",
		Args:    noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON(cmd) {
				return e.writeJSON(currentBuild())
			}
			return e.write(currentBuild().String() + "\n")
		},
	}
}
