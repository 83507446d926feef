package main

import (
	"strings"
	"testing"

	"github.com/idem-go/idem/internal/embedded"
	"github.com/idem-go/idem/internal/pgtest"
)

const (
	advice  = "; check that it is running and that the database URL is right"
	example = "; it looks like postgres://user:password@host:5432/database, with special characters percent-encoded"
)

func TestDatabase_absentIsUnavailable(t *testing.T) {
	tests := []struct{ url, stderr string }{
		{"postgres://u:s3cret@127.0.0.1:1/d", "127.0.0.1:1 (127.0.0.1): dial error: dial tcp 127.0.0.1:1: connect: connection refused"},
		{"host=127.0.0.1 port=1 user=u password=s3cret", "127.0.0.1:1 (127.0.0.1): dial error: dial tcp 127.0.0.1:1: connect: connection refused"},
		{"host=/nonexistent user=u password=s3cret sslmode=disable", "/nonexistent/.s.PGSQL.5432 (/nonexistent): dial error: dial unix /nonexistent/.s.PGSQL.5432: connect: no such file or directory"},
	}
	for _, tt := range tests {
		for _, args := range append(commandsOnASchema(), []string{"migrate", "up"}, []string{"migrate", "status"}) {
			got := command(t, on(tt.url), args...)
			wantResult(t, got, exitUnavailable, "idem: cannot connect to the database: "+tt.stderr+advice)
		}
	}
}

func TestDatabase_whoIsNotLetInIsTold(t *testing.T) {
	conn, _, _ := strings.Cut(pgtest.Empty(t), "?")
	server := conn[:strings.LastIndex(conn, "/")]
	absent := command(t, on(server+"/no_such_database"), "check")
	if absent.code != exitUnavailable || !strings.Contains(absent.stderr, `database "no_such_database" does not exist`) ||
		!strings.HasSuffix(absent.stderr, "; create the database, or correct the database URL\n") {
		t.Errorf("got exit code %d and stderr %q", absent.code, absent.stderr)
	}
	at := strings.LastIndexByte(conn, '@')
	stranger := command(t, on("postgres://stranger:s3cret"+conn[at:]), "check")
	if stranger.code != exitUnavailable || strings.Contains(stranger.stderr, "s3cret") ||
		!strings.HasSuffix(stranger.stderr, "; check user and password in the database URL\n") {
		t.Errorf("got exit code %d and stderr %q", stranger.code, stranger.stderr)
	}
}

// Every URL here holds a password in which "s3c" and "ret" stand apart.
func TestDatabase_neverPrintsThePassword(t *testing.T) {
	tests := []struct{ url, cause string }{
		{"postgres://u:s3cret@127.0.0.1:port/d", " (invalid port)"},
		{"postgres://u:s3c/ret@127.0.0.1:1/d", " (invalid port)"},
		{"postgres://u:12/s3c/ret@127.0.0.1:1/d", ` (an "@" in a wrong place)`},
		{"postgres://u:12?s3c=ret@127.0.0.1:1/d", ` (an "@" in a wrong place)`},
		{"postgres://u:s3c@ret@127.0.0.1:1/d", ` (an "@" in a wrong place)`},
		{"postgres://u:s3c%ret@127.0.0.1:1/d", " (failed to parse as URL)"},
		{"postgres://u:s3cret@127.0.0.1:1/d?sslmode=wrong", " (failed to configure TLS)"},
		{"postgres://u:s3cret@127.0.0.1:1/d?pool_max_conns=none", " (pool_max_conns)"},
		{"mysql://u:s3cret@127.0.0.1:1/d", " (failed to parse as keyword/value)"},
		{"host=127.0.0.1 port=1 password=s3c ret user=u", " (failed to parse as keyword/value)"},
		{"s3cret", " (failed to parse as keyword/value)"},
	}
	for _, tt := range tests {
		got := command(t, nil, "check", "--database-url", tt.url)
		wantResult(t, got, exitUsage, "idem: the database URL in --database-url cannot be read"+tt.cause+example)
	}
	for _, args := range [][]string{
		{"postgres://u:s3cret@127.0.0.1:1/d"}, {"check", "postgres://u:s3cret@127.0.0.1:1/d"},
		{"demo", "postgres://u:s3cret@127.0.0.1:1/d"}, {"keys", "postgres://u:s3cret@127.0.0.1:1/d"},
		{"help", "postgres://u:s3cret@127.0.0.1:1/d"}, {"keys", "list", "--limit", "postgres://u:s3cret@127.0.0.1:1/d"},
	} {
		got := command(t, nil, args...)
		if got.code != exitUsage || strings.Contains(got.stderr+got.stdout, "s3c") || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%v: got exit code %d and stderr %q, want 2 and one line without the password", args, got.code, got.stderr)
		}
	}
}

// A server whose COMMIT waits for standbys is one that an operator looks at, too.
func TestDatabase_withStandbysCanBeAsked(t *testing.T) {
	settings := map[string]string{"synchronous_standby_names": "nobody", "synchronous_commit": "local", "fsync": "off"}
	server, err := embedded.Start(t.Context(), embedded.Config{Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	wantResult(t, command(t, on(server.URL()), "migrate", "up"), exitDone, "")
	wantResult(t, command(t, on(server.URL()), "keys", "list"), exitDone, "idem: no keys")
}
