package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idem-go/idem/internal/pgtest"
)

const nowhere = "postgres://u@127.0.0.1:1/d"

// configWith writes a configuration file and returns its path.
func configWith(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestConfig_flagOverEnvironmentOverFile(t *testing.T) {
	url := pgtest.NewURL(t)
	right, wrong := configWith(t, `{"database_url": "`+url+`"}`), configWith(t, `{"database_url": "`+nowhere+`"}`)
	tests := []struct {
		name        string
		environment vars
		args        []string
		code        int
	}{
		{"flag first", vars{"DATABASE_URL": nowhere, "IDEM_CONFIG": wrong}, []string{"--database-url", url}, exitDone},
		{"flag first, wrong", vars{"DATABASE_URL": url, "IDEM_CONFIG": right}, []string{"--database-url", nowhere}, exitUnavailable},
		{"then the environment", vars{"DATABASE_URL": url, "IDEM_CONFIG": wrong}, nil, exitDone},
		{"then the environment, wrong", vars{"DATABASE_URL": nowhere}, []string{"--config", right}, exitUnavailable},
		{"then the named file", vars{"IDEM_CONFIG": wrong}, []string{"--config", right}, exitDone},
		{"then the file of IDEM_CONFIG", vars{"IDEM_CONFIG": right}, nil, exitDone},
		{"an empty variable is none", vars{"DATABASE_URL": "", "IDEM_CONFIG": right}, nil, exitDone},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := command(t, tt.environment, append([]string{"check"}, tt.args...)...); got.code != tt.code {
				t.Errorf("got exit code %d and stderr %q, want %d", got.code, got.stderr, tt.code)
			}
		})
	}
}

func TestConfig_usersOwnFileIsTheLast(t *testing.T) {
	emptyConfigDir(t)
	dir, err := os.UserConfigDir()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "idem"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "idem", "config.json")
	keep := vars{"XDG_CONFIG_HOME": dir}
	if err := os.WriteFile(path, []byte(`{"database_url": "`+pgtest.NewURL(t)+`"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	wantResult(t, command(t, keep, "check"), exitDone, "idem: every invariant holds")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantResult(t, command(t, keep, "check"), exitUsage,
		"idem: the configuration file "+path+` must be {"database_url": "..."}: unexpected EOF`)
}

func TestConfig_wrongFilesAreNamed(t *testing.T) {
	tests := []struct{ content, fault string }{
		{"", "it is empty"},
		{`{"database_url": "` + nowhere + `"} x`, "something follows the object"},
		{`{"databse_url": "` + nowhere + `"}`, `json: unknown field "databse_url"`},
		{`{"database_url": 5}`, "json: cannot unmarshal number into Go struct field config.database_url of type string"},
	}
	for _, tt := range tests {
		path := configWith(t, tt.content)
		wantResult(t, command(t, nil, "check", "--config", path), exitUsage,
			"idem: the configuration file "+path+` must be {"database_url": "..."}: `+tt.fault)
	}
	large := configWith(t, strings.Repeat(" ", maxConfig+1))
	wantResult(t, command(t, nil, "check", "--config", large), exitUsage,
		"idem: the configuration file "+large+" is larger than 1 MiB")
	absent := filepath.Join(t.TempDir(), "absent.json")
	wantResult(t, command(t, vars{"IDEM_CONFIG": absent}, "check"), exitUsage,
		"idem: cannot read the configuration file of IDEM_CONFIG: open "+absent+": no such file or directory")
}
