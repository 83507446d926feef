package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/idem-go/idem/internal/pgtest"
)

// release is a whole command line that releases bob's key.
func release(key string, more ...string) []string {
	return append([]string{"keys", "release", key, "--scope", "bob", "--reason", "the slot was freed", "--yes"}, more...)
}

func TestKeysRelease_freesARefusalAndWritesItDown(t *testing.T) {
	url := withKeys(t)
	got := command(t, on(url), release("order-1", "--actor", "carol@desk")...)
	wantResult(t, got, exitDone, "")
	if want := "released order-1 of bob; the next request with it runs as new\n"; got.stdout != want {
		t.Errorf("got %q, want %q", got.stdout, want)
	}
	if got := command(t, on(url), "keys", "show", "order-1", "--scope", "bob"); got.code != exitNotFound {
		t.Errorf("the key is still there: %s", got.stdout)
	}
	if got := command(t, on(url), "keys", "show", "order-1", "--scope", "alice"); got.code != exitDone {
		t.Errorf("another scope's key is gone: %s", got.stderr)
	}
	story := command(t, on(url), "why", "order-1", "--scope", "bob")
	if !strings.Contains(story.stdout, "released  by carol@desk:  the slot was freed\n") {
		t.Errorf("got %s, want who released it and why", story.stdout)
	}
	wantResult(t, command(t, on(url), release("order-1")...), exitNotFound,
		"idem: the scope bob does not remember the key order-1; a request with it runs as new")
}

func TestKeysRelease_json(t *testing.T) {
	url := withKeys(t)
	got := command(t, on(url), release("order-1", "--json")...)
	wantResult(t, got, exitDone, "")
	var change changeJSON
	if err := json.Unmarshal([]byte(got.stdout), &change); err != nil {
		t.Fatal(err)
	}
	if change.Action != "key_release" || change.Scope != "bob" || change.Key != "order-1" || change.Reason != "the slot was freed" || change.ID == 0 {
		t.Errorf("got %+v", change)
	}
	if change.Actor != whoRuns() || !strings.Contains(change.Actor, "@") {
		t.Errorf("got actor %q, want the system's user at this host, %q", change.Actor, whoRuns())
	}
	var detail map[string]any
	if err := json.Unmarshal(change.Detail, &detail); err != nil || detail["response_status"] != 409.0 {
		t.Errorf("got detail %s (%v), want the status that was forgotten", change.Detail, err)
	}
}

func TestKeysRelease_refusals(t *testing.T) {
	url := withAudit(t)
	tests := []struct{ scope, key, stderr string }{
		{"alice", "order-1", "what the request of order-1 of alice wrote is committed; a second run would do it again"},
		{"dave", "kept", "what the request of kept of dave wrote is committed; a second run would do it again"},
		{"dave", "older", "whether the request of older of dave committed anything is not known; a second run might do it again"},
		{"carol", "charge", "whether the request of charge of carol committed anything is not known; a second run might do it again"},
		{"alice", "export", "the request of export of alice was carried out, and its answer was too large to store"},
		{"carol", "refund", "the time of the answer of refund of carol is over; there is no refusal to release"},
		{"alice", "late", "the time of the answer of late of alice is over; there is no refusal to release"},
		{"dave", "past", "the time of the answer of past of dave is over; there is no refusal to release"},
	}
	before := command(t, on(url), "keys", "list").stdout
	for _, tt := range tests {
		got := command(t, on(url), "keys", "release", tt.key, "--scope", tt.scope, "--reason", "r", "--yes")
		wantResult(t, got, exitRefused, "idem: refused: "+tt.stderr)
	}
	if after := command(t, on(url), "keys", "list").stdout; after != before {
		t.Errorf("a refused release changed something: got\n%s\nwant\n%s", after, before)
	}
	url = pgtest.NewURL(t)
	holdLock(t, url, "bob", "busy")
	wantResult(t, command(t, on(url), release("busy")...), exitRefused,
		"idem: refused: busy of bob is in flight; wait until it has ended")
}
