package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5"
)

// update rewrites the golden files: go test ./cmd/idem -update
var update = flag.Bool("update", false, "rewrite the golden files")

// TestMain is also idem demo where a test needs it as a process, and the processes
// of its storm: it starts its own file again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "demo") {
		main()
	}
	pgtest.Main(m)
}

// result is what one command line left behind.
type result struct {
	code           int
	stdout, stderr string
}

// vars is the environment of one command line.
type vars map[string]string

// command runs one command line in this process, with nothing in its
// environment but vars and without anybody's configuration file.
func command(t *testing.T, environment vars, args ...string) result {
	t.Helper()
	if _, set := environment["XDG_CONFIG_HOME"]; !set {
		emptyConfigDir(t)
	}
	var stdout, stderr bytes.Buffer
	getenv := func(name string) string { return environment[name] }
	code := run(t.Context(), args, strings.NewReader(""), &stdout, &stderr, getenv)
	return result{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

// emptyConfigDir hides the configuration directory of whoever runs the tests.
func emptyConfigDir(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"XDG_CONFIG_HOME", "HOME", "AppData"} {
		t.Setenv(name, dir)
	}
}

// on is the environment of a command on the database of url.
func on(url string) vars { return vars{"DATABASE_URL": url} }

// golden compares got with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got\n%s\nwant\n%s", path, got, want)
	}
}

// wantResult compares the exit code and stderr, which is one line or nothing.
func wantResult(t *testing.T, got result, code int, stderr string) {
	t.Helper()
	if stderr != "" {
		stderr += "\n"
	}
	if got.code != code || got.stderr != stderr {
		t.Errorf("got exit code %d and stderr %q, want %d and %q", got.code, got.stderr, code, stderr)
	}
}

// execute runs SQL of a test's own on the database of url.
func execute(t *testing.T, url, sql string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // also in a cleanup
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Fatal(err)
	}
}
