package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/idem-go/idem/admin"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/spf13/cobra"
)

func TestUsage_oneClearLineAndExitCode(t *testing.T) {
	tests := []struct {
		args   string
		stderr string
	}{
		{"migrat", `no command "migrat"; did you mean idem migrate?`},
		{"keys", "keys needs a command: list, release, show"},
		{"effects", "effects needs a command: list, settle, show"},
		{"tasks", "tasks needs a command: cancel, enqueue, list, pause, resume, retry, show"},
		{"keys lst", `no command "lst" below keys; did you mean idem keys list?`},
		{"keys drop", `no command "drop" below keys; run idem keys --help`},
		{"help nothing", `no command "nothing"; run idem --help`},
		{"completion", "completion needs a command: bash, fish, powershell, zsh"},
		{"check --nope", "unknown flag: --nope; run idem check --help"},
		{"check now", "check takes no arguments; run idem check --help"},
		{"keys show", "keys show takes one KEY; run idem keys show --help"},
		{"keys show a b", "keys show takes one KEY; run idem keys show --help"},
		{"keys show ключ", "byte 1 of KEY is not visible ASCII; write words and ids, such as receipt:17"},
		{"keys show " + strings.Repeat("k", 256), "KEY has 256 bytes, it may have 1 to 255"},
		{"keys show k --scope=", "--scope is empty; write 1 to 255 bytes of text"},
		{"why", "why takes one KEY; run idem why --help"},
		{"why ключ", "byte 1 of KEY is not visible ASCII; write words and ids, such as receipt:17"},
		{"why k --scope=", "--scope is empty; write 1 to 255 bytes of text"},
		{"keys release", "keys release takes one KEY; run idem keys release --help"},
		{"keys release k --reason r --yes", "keys release needs --scope: whose key is it?"},
		{"keys release k --scope s --yes", "keys release needs --reason: it is written down for whoever asks later"},
		{"keys release k --scope s --reason= --yes", "keys release needs --reason: it is written down for whoever asks later"},
		{"keys release k --scope s --reason r --actor= --yes", "keys release needs --actor: who does this?"},
		{"keys release k --scope s --reason r", "keys release forgets for good; add --yes"},
		{"keys list --scope=", "--scope is empty; write 1 to 255 bytes of text"},
		{"keys list --state done", `--state is "done", it may be claimed, answered, withheld, unknown or tombstone`},
		{"keys list --limit 0", "--limit is 0, it may be 1 to 1000"},
		{"keys list --limit 1001", "--limit is 1001, it may be 1 to 1000"},
		{"keys list --before yesterday", "--before is neither a time like 2026-01-31T12:00:00Z nor the position that a list ended with"},
		{"why " + strings.Repeat("e", 513), "KEY has 513 bytes, it may have 1 to 512"},
		{"effects list --scope=", "--scope is empty; write 1 to 255 bytes of text"},
		{"effects list --status done", `--status is "done", it may be started, applied, unknown or absent`},
		{"effects list --limit 1001", "--limit is 1001, it may be 1 to 1000"},
		{"effects list --before yesterday", "--before is neither a time like 2026-01-31T12:00:00Z nor the position that a list ended with"},
		{"effects show", "effects show takes one KEY; run idem effects show --help"},
		{"effects show ключ", "byte 1 of KEY is not visible ASCII; write words and ids, such as receipt:17"},
		{"effects show " + strings.Repeat("e", 513), "KEY has 513 bytes, it may have 1 to 512"},
		{"effects show e --scope=", "--scope is empty; write 1 to 255 bytes of text"},
		{"effects settle", "effects settle takes one KEY; run idem effects settle --help"},
		{"effects settle e --absent --reason r --yes", "effects settle needs --scope: whose effect is it?"},
		{"effects settle e --scope s --reason r --yes", "effects settle needs either --applied or --absent: was it done?"},
		{"effects settle e --scope s --applied --absent --reason r --yes", "effects settle needs either --applied or --absent: was it done?"},
		{"effects settle e --scope s --applied --reason r --yes", "effects settle --applied needs --result: what would the call have returned? null if nothing"},
		{"effects settle e --scope s --absent --result 1 --reason r --yes", "effects settle --absent takes no --result: what was not done has none"},
		{"effects settle e --scope s --absent --calls 0 --reason r --yes", "--calls is 0, it may be 1 or more: how many calls does idem effects show tell?"},
		{"effects settle e --scope s --absent --yes", "effects settle needs --reason: it is written down for whoever asks later"},
		{"effects settle e --scope s --absent --reason r --actor= --yes", "effects settle needs --actor: who does this?"},
		{"effects settle e --scope s --absent --reason r", "effects settle decides for good; add --yes"},
		{"effects settle e --scope s --applied --result {id:1} --reason r --yes", "--result is not JSON; give what the program's call would have returned, null if that is nothing"},
		{"effects settle e --scope s --applied --result= --reason r --yes", "--result is not JSON; give what the program's call would have returned, null if that is nothing"},
		{"effects settle e --scope s --applied --result @absent.json --reason r --yes", "cannot read the file of --result: open absent.json: no such file or directory"},
		{"effects settle e --scope s --applied --result @/dev/zero --reason r --yes", "--result has more than 1048576 bytes"},
		{"effects settle ключ --scope s --absent --reason r --yes", "byte 1 of KEY is not visible ASCII; write words and ids, such as receipt:17"},
		{"tasks list --status lost", `--status is "lost", it may be pending, running, done, failed or cancelled`},
		{"tasks list --limit 0", "--limit is 0, it may be 1 to 1000"},
		{"tasks list --queue=", "--queue is empty; write 1 to 128 bytes of visible ASCII, such as receipt:17"},
		{"tasks list --before yesterday", "--before is neither a time like 2026-01-31T12:00:00Z nor the id of a task"},
		{"tasks show", "tasks show takes one ID or KEY; run idem tasks show --help"},
		{"tasks show ключ", "byte 1 of the ID or KEY is not visible ASCII; write words and ids, such as receipt:17"},
		{"tasks retry a b", "tasks retry takes one ID or KEY, or none; run idem tasks retry --help"},
		{"tasks retry a", "tasks retry needs --reason: it is written down for whoever asks later"},
		{"tasks retry a --reason r --actor=", "tasks retry needs --actor: who does this?"},
		{"tasks retry --reason r --yes", "tasks retry takes an ID or KEY, or flags that choose tasks, or --all; run idem tasks retry --help"},
		{"tasks retry a --kind k --reason r --yes", "tasks retry takes a task or --kind, not both"},
		{"tasks retry --status done --reason r --yes", `--status is "done", it may be failed or cancelled`},
		{"tasks retry --before 17 --reason r --yes", "--before is not a time like 2026-01-31T12:00:00Z"},
		{"tasks cancel a --reason r", "tasks cancel needs --yes"},
		{"tasks cancel --status failed --reason r --yes", `--status is "failed", it may be pending or running`},
		{"tasks enqueue", "tasks enqueue takes one KIND; run idem tasks enqueue --help"},
		{"tasks enqueue k --payload 1 --reason r", "tasks enqueue needs either --key or --unkeyed: may it be enqueued twice?"},
		{"tasks enqueue k --key a --unkeyed --payload 1 --reason r", "tasks enqueue needs either --key or --unkeyed: may it be enqueued twice?"},
		{"tasks enqueue k --unkeyed --reason r", "tasks enqueue needs --payload: what does its handler get? null if nothing"},
		{"tasks enqueue k --unkeyed --payload {a:1} --reason r", `--payload is not JSON (invalid character 'a' looking for beginning of object key string); write it in quotes, such as '{"order":17}', or @FILE, or null if the handler gets nothing`},
		{"tasks enqueue k --unkeyed --payload \"\xff\" --reason r", "--payload is not UTF-8, which JSON has to be"},
		{"tasks enqueue k --unkeyed --payload @absent.json --reason r", "cannot read the file of --payload: open absent.json: no such file or directory"},
		{"tasks enqueue k --unkeyed --payload @/dev/zero --reason r", "--payload has more than 1048576 bytes"},
		{"tasks enqueue k --unkeyed --payload 1 --attempts 0 --reason r", "--attempts is 0, it may be 1 to 1000"},
		{"tasks enqueue k --unkeyed --payload 1 --retention 0s --reason r", "--retention is 0s, it may be 1s to 87600h"},
		{"tasks enqueue k --unkeyed --payload 1", "tasks enqueue needs --reason: it is written down for whoever asks later"},
		{"tasks pause", "tasks pause takes one QUEUE; run idem tasks pause --help"},
		{"tasks resume q", "tasks resume needs --reason: it is written down for whoever asks later"},
		{"check", "no database configured: use --database-url, set DATABASE_URL, or write database_url into a file for --config"},
		{"check --database-url=", "the database URL in --database-url is empty"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			got := command(t, nil, strings.Fields(tt.args)...)
			wantResult(t, got, exitUsage, "idem: "+tt.stderr)
			if got.stdout != "" {
				t.Errorf("got stdout %q, want nothing", got.stdout)
			}
		})
	}
}

func TestHelp_output(t *testing.T) {
	for name, args := range map[string][]string{
		"help":               nil,
		"help_keys":          {"help", "keys"},
		"help_keys_list":     {"keys", "list", "--help"},
		"help_keys_show":     {"help", "keys", "show"},
		"help_release":       {"keys", "release", "-h"},
		"help_effects":       {"effects", "-h"},
		"help_effects_list":  {"effects", "list", "-h"},
		"help_effects_show":  {"effects", "show", "-h"},
		"help_settle":        {"effects", "settle", "-h"},
		"help_tasks":         {"tasks", "-h"},
		"help_tasks_list":    {"tasks", "list", "-h"},
		"help_tasks_show":    {"tasks", "show", "-h"},
		"help_tasks_retry":   {"tasks", "retry", "-h"},
		"help_tasks_cancel":  {"tasks", "cancel", "-h"},
		"help_tasks_enqueue": {"tasks", "enqueue", "-h"},
		"help_tasks_pause":   {"tasks", "pause", "-h"},
		"help_tasks_resume":  {"tasks", "resume", "-h"},
		"help_why":           {"why", "-h"},
		"help_migrate":       {"migrate", "-h"},
		"help_check":         {"check", "-h"},
		"help_sweep":         {"sweep", "-h"},
	} {
		got := command(t, nil, args...)
		wantResult(t, got, exitDone, "")
		golden(t, name, got.stdout)
	}
}

func TestHelp_everyCommandBeginsWithExamples(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		args := append([]string{"help"}, strings.Fields(cmd.CommandPath())[1:]...)
		got := command(t, nil, args...)
		examples, usage := strings.Index(got.stdout, "Examples:"), strings.Index(got.stdout, "Usage:")
		if ours := !cmd.HasParent() || cmd.Parent().Name() != "completion"; ours && (examples < 0 || examples > usage) {
			t.Errorf("%v: the help does not begin with examples:\n%s", args, got.stdout)
		}
		for _, child := range cmd.Commands() {
			visit(child)
		}
	}
	visit(newRootCommand(env{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}, getenv: func(string) string { return "" }}))
}

func TestVersion_namesProgramAndSchema(t *testing.T) {
	line := command(t, nil, "version")
	wantResult(t, line, exitDone, "")
	if !strings.HasPrefix(line.stdout, "idem ") || !strings.HasSuffix(line.stdout, ", schema 6\n") {
		t.Errorf("got %q", line.stdout)
	}
	if flag := command(t, nil, "--version"); flag != line {
		t.Errorf("--version: got %+v, want what version says: %+v", flag, line)
	}
	var fields map[string]any
	got := command(t, nil, "version", "--json")
	if err := json.Unmarshal([]byte(got.stdout), &fields); err != nil || fields["schema"] != 6.0 {
		t.Errorf("got %q (%v)", got.stdout, err)
	}
}

func TestCompletion_knowsTheCommands(t *testing.T) {
	got := command(t, nil, "__complete", "keys", "")
	if got.code != exitDone || !strings.Contains(got.stdout, "list\t") || !strings.Contains(got.stdout, "show\t") {
		t.Errorf("got exit code %d and %q", got.code, got.stdout)
	}
	if script := command(t, nil, "completion", "bash"); script.code != exitDone || !strings.Contains(script.stdout, "__start_idem") {
		t.Errorf("got exit code %d and no script", script.code)
	}
}

func TestRun_interruptedIsTold(t *testing.T) {
	url := pgtest.NewURL(t)
	emptyConfigDir(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range append(commandsOnASchema(), []string{"migrate", "up"}) {
		var stdout, stderr bytes.Buffer
		code := run(ctx, append(args, "--database-url", url), strings.NewReader(""), &stdout, &stderr, func(string) string { return "" })
		wantResult(t, result{code, stdout.String(), stderr.String()}, exitFailed, "idem: interrupted")
	}
}

// full is an output that takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestRun_lostOutputIsAFailure(t *testing.T) {
	url := withKeys(t)
	for _, args := range [][]string{{"keys", "list"}, {"check", "--json"}, {"sweep"}, {"migrate", "status"}, {"migrate", "print"}} {
		var stderr bytes.Buffer
		code := run(t.Context(), args, strings.NewReader(""), full{}, &stderr, func(name string) string { return on(url)[name] })
		wantResult(t, result{code: code, stderr: stderr.String()}, exitFailed, "idem: cannot write the output: no space left on device")
	}
}

func TestPainter_coloursOnlyATerminalThatWantsIt(t *testing.T) {
	terminal, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // a character device, as a terminal is
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	none := vars{}
	tests := []struct {
		name        string
		e           env
		environment vars
		args        []string
		want        string
	}{
		{"a terminal", env{stdout: terminal}, none, nil, "\x1b[32mword\x1b[0m"},
		{"no terminal", env{stdout: &bytes.Buffer{}}, none, nil, "word"},
		{"NO_COLOR", env{stdout: terminal}, vars{"NO_COLOR": "1"}, nil, "word"},
		{"empty NO_COLOR", env{stdout: terminal}, vars{"NO_COLOR": ""}, nil, "\x1b[32mword\x1b[0m"},
		{"--no-color", env{stdout: terminal}, none, []string{"--no-color"}, "word"},
		{"a dumb terminal", env{stdout: terminal}, vars{"TERM": "dumb"}, nil, "word"},
	}
	for _, tt := range tests {
		tt.e.getenv = func(name string) string { return tt.environment[name] }
		cmd := newRootCommand(tt.e)
		if err := cmd.ParseFlags(tt.args); err != nil {
			t.Fatal(err)
		}
		if got := tt.e.painter(cmd)(green, "word"); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestKeyRows_columnsStayAlignedInColour(t *testing.T) {
	rows := keyRows([]admin.Key{{State: admin.StateUnknown}, {State: admin.StateAnswered}, {State: admin.StateTombstone}}, ansi)
	for _, row := range rows {
		if escapes := len(row[2]) - len(strings.NewReplacer("\x1b[39m", "", "\x1b[31m", "", "\x1b[32m", "", "\x1b[0m", "").Replace(row[2])); escapes != 9 {
			t.Errorf("%q holds %d bytes of escapes, want 9 in every row", row[2], escapes)
		}
	}
}
