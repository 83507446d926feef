package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idem-go/idem/internal/claim"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5"
)

// withAudit is withKeys with what testdata/audit.sql adds to it.
func withAudit(t *testing.T) (url string) {
	t.Helper()
	url = withKeys(t)
	sql, err := os.ReadFile(filepath.Join("testdata", "audit.sql"))
	if err != nil {
		t.Fatal(err)
	}
	execute(t, url, string(sql))
	return url
}

func TestWhy_output(t *testing.T) {
	url := withAudit(t)
	tests := map[string][]string{
		"why_committed":      {"why", "order-1", "--scope", "alice"},
		"why_committed_json": {"why", "order-1", "--scope", "alice", "--json"},
		"why_refused":        {"why", "order-1", "--scope", "bob"},
		"why_refused_json":   {"why", "order-1", "--scope", "bob", "--json"},
		"why_kept":           {"why", "kept"},
		"why_older":          {"why", "older"},
		"why_withheld":       {"why", "export"},
		"why_unknown":        {"why", "charge"},
		"why_tombstone":      {"why", "refund"},
		"why_late":           {"why", "late"},
		"why_over":           {"why", `a,b"c`},
		"why_over_refused":   {"why", "past"},
		"why_released":       {"why", "freed"},
		"why_released_json":  {"why", "freed", "--json"},
	}
	for name, args := range tests {
		t.Run(name, func(t *testing.T) {
			got := command(t, on(url), args...)
			wantResult(t, got, exitDone, "")
			golden(t, name, got.stdout)
		})
	}
}

func TestWhy_neverShowsTheBody(t *testing.T) {
	url := withAudit(t)
	for _, args := range [][]string{{"why", "order-1", "--scope", "alice"}, {"why", "order-1", "--scope", "alice", "--json"}} {
		if got := command(t, on(url), args...); strings.Contains(got.stdout+got.stderr, "1500") {
			t.Errorf("%v showed the stored body: %s", args, got.stdout)
		}
	}
}

func TestWhy_whatIsNotKnown(t *testing.T) {
	url := withAudit(t)
	const means = "it was never answered, or its time is over and it was swept; a request with it runs as new"
	tests := []struct {
		args   []string
		code   int
		stderr string
	}{
		{[]string{"order-1"}, exitUsage, "idem: several scopes have the key order-1; add --scope: alice, bob"},
		{[]string{"nobody"}, exitNotFound, "idem: no scope knows nobody: " + means + "; whether one is running now can only be seen with --scope"},
		{[]string{"order-1", "--scope", "carol"}, exitNotFound, "idem: order-1 of carol is not known: " + means},
	}
	for _, tt := range tests {
		wantResult(t, command(t, on(url), append([]string{"why"}, tt.args...)...), tt.code, tt.stderr)
	}
}

// holdLock holds a key's lock, as a running request does, in a session with the
// application name shop.
func holdLock(t *testing.T, url, scope, key string) (pid uint32) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), withParameter(url, "application_name=shop"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	lock, _ := claim.Locks(scope, key, nil)
	for _, sql := range []string{"begin", fmt.Sprintf("select pg_advisory_xact_lock(%d)", lock)} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	return conn.PgConn().PID()
}

func TestWhy_namesWhoIsRunning(t *testing.T) {
	url := pgtest.NewURL(t)
	pid := holdLock(t, url, "alice", "busy")
	got := command(t, on(url), "why", "busy", "--scope", "alice")
	wantResult(t, got, exitDone, "")
	for _, part := range []string{
		"busy of alice is running now.\n", "Not decided: the request is still running.", "No. Both would be carried out.",
		fmt.Sprintf("running now  yes: server process %d, application shop, ", pid), "idle in transaction\n",
	} {
		if !strings.Contains(got.stdout, part) {
			t.Errorf("got %s\nwant %q in it", got.stdout, part)
		}
	}
	var story storyJSON
	got = command(t, on(url), "why", "busy", "--scope", "alice", "--json")
	if err := json.Unmarshal([]byte(got.stdout), &story); err != nil || story.InFlight == nil {
		t.Fatalf("got %s (%v), want who is in flight", got.stdout, err)
	}
	if o := story.InFlight; o.PID != int(pid) || o.Application != "shop" || o.Since == nil || o.Seconds <= 0 {
		t.Errorf("got %+v, want process %d of shop and its time", o, pid)
	}
	if story.Retry != "waits" || story.Outcome != "unknown" || story.SafeNewKey {
		t.Errorf("got %+v, want waits, unknown and no new key", story)
	}
}
