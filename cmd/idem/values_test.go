package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// wholeLines are command lines that lack nothing but a database, by command.
var wholeLines = map[string]string{
	"migrate up":     "migrate up",
	"migrate status": "migrate status",
	"migrate print":  "", // needs no database
	"why":            "why k",
	"keys list":      "keys list",
	"keys show":      "keys show k",
	"keys release":   "keys release k --scope s --reason r --yes",
	"tasks list":     "tasks list",
	"tasks show":     "tasks show k",
	"tasks retry":    "tasks retry --all --reason r --yes",
	"tasks cancel":   "tasks cancel --all --reason r --yes",
	"tasks enqueue":  "tasks enqueue k --unkeyed --payload 1 --reason r",
	"tasks pause":    "tasks pause q --reason r",
	"tasks resume":   "tasks resume q --reason r",
	"effects list":   "effects list",
	"effects show":   "effects show k",
	"effects settle": "effects settle k --scope s --applied --result 1 --reason r --yes",
	"sweep":          "sweep",
	"check":          "check",
	"demo":           "", // see TestDemo_refusesFlagsThatContradict
	"version":        "",
}

// goWords are what a message of the packages below is known by.
var goWords = regexp.MustCompile(`strconv|Options\.|Task\.|Config\.|invalid (filter|task|key|scope|effect)|SQLSTATE|%!`)

// refusedValue checks that a value is refused by its name, before any database work.
func refusedValue(t *testing.T, name string, args ...string) {
	t.Helper()
	got := command(t, on(nowhere), args...)
	if got.code != exitUsage || !strings.Contains(got.stderr, name) || goWords.MatchString(got.stderr) || strings.Count(got.stderr, "\n") != 1 {
		t.Errorf("%.60q ...: got exit code %d and %.300q, want %d and a line that names %s", args, got.code, got.stderr, exitUsage, name)
	}
}

// commandsWithLines calls visit for every command of wholeLines with its line, and fails for
// one that is not there.
func commandsWithLines(t *testing.T, visit func(cmd *cobra.Command, line []string)) {
	t.Helper()
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		line, known := wholeLines[pathBelowRoot(cmd)]
		switch {
		case cmd.Hidden, cmd.Name() == "completion", cmd.Name() == "help":
			return
		case !cmd.HasSubCommands() && !known:
			t.Errorf("%s has no line among wholeLines", cmd.CommandPath())
		case line != "":
			visit(cmd, strings.Fields(line))
		}
		for _, child := range cmd.Commands() {
			walk(child)
		}
	}
	walk(newRootCommand(env{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}, getenv: func(string) string { return "" }}))
}

// badValues are values that no flag of a type takes.
func badValues(flag *pflag.Flag) []string {
	bad := []string{"", "\xff"}
	switch flag.Value.Type() {
	case "bool":
		return append(bad, "perhaps")
	case "int":
		bad = append(bad, "x", "1.5", "-1000", "99999999999999999999")
		if flag.Name != "calls" { // which has no bound
			bad = append(bad, "100000")
		}
		return bad
	case "duration":
		return append(bad, "x", "1", "-1s", "1000000h", "9999999h")
	}
	return append(bad, strings.Repeat("x", 1001))
}

// Whatever is wrong with the value of a flag is told by the flag's name.
func TestFlags_badValuesAreToldByTheirNames(t *testing.T) {
	commandsWithLines(t, func(cmd *cobra.Command, line []string) {
		if got := command(t, on(nowhere), line...); got.code != exitUnavailable {
			t.Errorf("%q: got exit code %d and %q, want a line that lacks nothing", line, got.code, got.stderr)
		}
		cmd.InheritedFlags() // makes Flags know them
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			if flag.Name == "help" {
				return
			}
			for _, bad := range badValues(flag) {
				refusedValue(t, "--"+flag.Name, append([]string{}, append(line, "--"+flag.Name+"="+bad)...)...)
			}
		})
	})
}

// So is what is wrong with an argument.
func TestArguments_badValuesAreToldByTheirNames(t *testing.T) {
	commandsWithLines(t, func(cmd *cobra.Command, line []string) {
		words := strings.Fields(cmd.Use)
		if len(words) < 2 {
			return
		}
		name := words[1]
		if strings.Contains(name, "|") {
			name = "the ID or KEY"
		}
		at := len(strings.Fields(pathBelowRoot(cmd)))
		for _, bad := range []string{"", "\xff", "a b", strings.Repeat("x", 513)} {
			args := append(append(append([]string{}, line[:at]...), bad), line[at:]...)
			switch {
			case strings.HasPrefix(words[1], "["): // instead of --all
				args = append(append(append([]string{}, line[:at]...), bad), line[at+1:]...)
			default: // instead of the one that is there
				args = append(args[:at+1], line[at+1:]...)
			}
			refusedValue(t, name, args...)
		}
	})
}

func TestFlags_sayWhatToWrite(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	for args, want := range map[string]string{
		"keys list --limit x":                                                     `--limit is "x", it must be a whole number; run idem keys list --help`,
		"keys list --limit 9999999999999999999999":                                `--limit is "9999999999999999999999", it must be a whole number with fewer digits; run idem keys list --help`,
		"check --json=x":                                                          `--json is "x", it must be true or false, or have no value; run idem check --help`,
		"demo --seed -1":                                                          `--seed is "-1", it must be a whole number from 0 on; run idem demo --help`,
		"check --config=":                                                         "--config is empty; name a FILE, or leave it out",
		"demo --data-dir=":                                                        "--data-dir is empty; name a DIR, or leave it out for a directory that is removed in the end",
		"keys list --before 2026-01-31T12:00:00Z,%ff,k":                           "--before is neither a time like 2026-01-31T12:00:00Z nor the position that a list ended with",
		"tasks list --cause " + long(256):                                         "--cause has 256 bytes, it may have 1 to 255",
		"tasks list --cause-scope=":                                               "--cause-scope is empty; write 1 to 255 bytes of text",
		"tasks show 1 --queue=":                                                   "--queue is empty; write 1 to 128 bytes of visible ASCII, such as receipt:17",
		"tasks retry a --actor " + long(256) + " --reason r":                      "--actor has 256 bytes, it may have 1 to 255",
		"tasks retry a --reason \xff":                                             "--reason is not UTF-8; write it in a terminal that is set to that",
		"tasks enqueue k --unkeyed --payload 1 --reason r --delay 1":              `--delay is "1", it must be a duration such as 90s or 24h; run idem tasks enqueue --help`,
		"tasks enqueue k --unkeyed --payload 1 --reason r --delay 87601h":         "--delay is 87601h, it may be 0s to 87600h",
		"tasks enqueue k --unkeyed --payload 1 --reason r --retention 100000h":    "--retention is 100000h, it may be 1s to 87600h",
		"tasks enqueue k --unkeyed --payload 1 --reason r --attempts 1001":        "--attempts is 1001, it may be 1 to 1000",
		"tasks enqueue k --unkeyed --payload 1 --reason r --priority -6":          "--priority is -6, it may be -5 to 5",
		"tasks enqueue k --key= --payload 1 --reason r":                           "--key is empty; write 1 to 512 bytes of visible ASCII, such as receipt:17",
		"tasks enqueue k --key " + long(513) + " --payload 1 --reason r":          "--key has 513 bytes, it may have 1 to 512",
		"tasks enqueue " + long(129) + " --unkeyed --payload 1 --reason r":        "KIND has 129 bytes, it may have 1 to 128",
		"tasks enqueue k --unkeyed --payload @ --reason r":                        "--payload is @ without the name of a file; write @FILE, or @- for stdin",
		"effects settle e --scope s --applied --result \"\xff\" --reason r --yes": "--result is not UTF-8, which JSON has to be",
		"effects settle e --scope s --absent --reason " + long(1001) + " --yes":   "--reason has 1001 bytes, it may have 1 to 1000",
		"tasks pause " + long(129) + " --reason r":                                "QUEUE has 129 bytes, it may have 1 to 128",
	} {
		wantResult(t, command(t, on(nowhere), strings.Fields(args)...), exitUsage, "idem: "+want)
	}
}
