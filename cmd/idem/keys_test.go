package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idem-go/idem/internal/pgtest"
)

// withKeys returns a database that holds the keys of testdata/keys.sql.
func withKeys(t *testing.T) (url string) {
	t.Helper()
	url = pgtest.NewURL(t)
	sql, err := os.ReadFile(filepath.Join("testdata", "keys.sql"))
	if err != nil {
		t.Fatal(err)
	}
	execute(t, url, string(sql))
	return url
}

func TestKeys_output(t *testing.T) {
	url := withKeys(t)
	tests := map[string][]string{
		"keys_list":              {"keys", "list"},
		"keys_list_json":         {"keys", "list", "--json"},
		"keys_list_scope":        {"keys", "list", "--scope", "alice"},
		"keys_list_state":        {"keys", "list", "--state", "unknown"},
		"keys_list_page":         {"keys", "list", "--limit", "3", "--json"},
		"keys_list_before":       {"keys", "list", "--before", "2026-01-03T10:00:00Z"},
		"keys_show":              {"keys", "show", "order-1", "--scope", "alice"},
		"keys_show_json":         {"keys", "show", "order-1", "--scope", "alice", "--json"},
		"keys_show_body":         {"keys", "show", "order-1", "--scope", "alice", "--body"},
		"keys_show_body_json":    {"keys", "show", "order-1", "--scope", "alice", "--body", "--json"},
		"keys_show_binary":       {"keys", "show", "order-1", "--scope", "bob", "--body"},
		"keys_show_binary_json":  {"keys", "show", "order-1", "--scope", "bob", "--body", "--json"},
		"keys_show_reference":    {"keys", "show", "report"},
		"keys_show_withheld":     {"keys", "show", "export"},
		"keys_show_unknown":      {"keys", "show", "charge"},
		"keys_show_unknown_json": {"keys", "show", "charge", "--json"},
		"keys_show_tombstone":    {"keys", "show", "refund"},
		"keys_show_expired":      {"keys", "show", `a,b"c`},
		"keys_show_late":         {"keys", "show", `"late"`, "--body"},
	}
	for name, args := range tests {
		t.Run(name, func(t *testing.T) {
			got := command(t, on(url), args...)
			wantResult(t, got, exitDone, "")
			golden(t, name, got.stdout)
		})
	}
}

func TestKeysList_pagesHoldEveryKeyOnce(t *testing.T) {
	url := withKeys(t)
	type page struct {
		Keys []struct{ Scope, Key string }
		Next string
	}
	var all page
	whole := command(t, on(url), "keys", "list", "--json")
	if err := json.Unmarshal([]byte(whole.stdout), &all); err != nil || len(all.Keys) != 8 {
		t.Fatalf("got %d keys and error %v, want 8 and none", len(all.Keys), err)
	}
	for _, limit := range []string{"1", "2", "3", "8"} {
		var paged page
		args := []string{"keys", "list", "--json", "--limit", limit}
		for position := args; ; {
			var next page
			if err := json.Unmarshal([]byte(command(t, on(url), position...).stdout), &next); err != nil {
				t.Fatal(err)
			}
			paged.Keys = append(paged.Keys, next.Keys...)
			if next.Next == "" {
				break
			}
			position = append(args[:len(args):len(args)], "--before", next.Next)
		}
		if len(paged.Keys) != len(all.Keys) {
			t.Fatalf("with --limit %s: got %d keys, want %d", limit, len(paged.Keys), len(all.Keys))
		}
		for i := range all.Keys {
			if paged.Keys[i] != all.Keys[i] {
				t.Errorf("with --limit %s: got %v at %d, want %v", limit, paged.Keys[i], i, all.Keys[i])
			}
		}
	}
}

func TestKeysList_saysHowToGoOn(t *testing.T) {
	got := command(t, on(withKeys(t)), "keys", "list", "--limit", "7")
	wantResult(t, got, exitDone, "idem: there may be more: --before 2026-01-01T10:00:00.000001Z,alice,order-1")
}

func TestKeysList_noneIsNoError(t *testing.T) {
	got := command(t, on(pgtest.NewURL(t)), "keys", "list")
	wantResult(t, got, exitDone, "idem: no keys")
	if got.stdout != "" {
		t.Errorf("got stdout %q, want nothing", got.stdout)
	}
}

func TestKeysShow_bodyOnlyWhenAsked(t *testing.T) {
	url := withKeys(t)
	for _, args := range [][]string{
		{"keys", "list"}, {"keys", "list", "--json"},
		{"keys", "show", "order-1", "--scope", "alice"}, {"keys", "show", "order-1", "--scope", "alice", "--json"},
	} {
		if got := command(t, on(url), args...); strings.Contains(got.stdout+got.stderr, "1500") {
			t.Errorf("%v showed the stored body: %s", args, got.stdout)
		}
	}
	if got := command(t, on(url), "keys", "show", "order-1", "--scope", "alice", "--body"); !strings.Contains(got.stdout, `{"id":1,"amount":1500}`) {
		t.Errorf("--body did not show the stored body: %s", got.stdout)
	}
}

func TestKeysShow_whatCannotBeShown(t *testing.T) {
	url := withKeys(t)
	tests := []struct {
		args   []string
		code   int
		stderr string
	}{
		{[]string{"order-1"}, exitUsage, "idem: several scopes have the key order-1; add --scope: alice, bob"},
		{[]string{"nobody"}, exitNotFound, "idem: no scope remembers the key nobody"},
		{[]string{"order-1", "--scope", "carol"}, exitNotFound, "idem: the scope carol does not remember the key order-1"},
	}
	for _, tt := range tests {
		got := command(t, on(url), append([]string{"keys", "show"}, tt.args...)...)
		wantResult(t, got, tt.code, tt.stderr)
	}
}
