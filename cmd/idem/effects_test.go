package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idem-go/idem/internal/pgtest"
)

// withEffects returns a database that holds what testdata/effects.sql says.
func withEffects(t *testing.T) (url string) {
	t.Helper()
	url = pgtest.NewURL(t)
	sql, err := os.ReadFile(filepath.Join("testdata", "effects.sql"))
	if err != nil {
		t.Fatal(err)
	}
	execute(t, url, string(sql))
	return url
}

func TestEffects_output(t *testing.T) {
	url := withEffects(t)
	tests := map[string][]string{
		"effects_list":             {"effects", "list"},
		"effects_list_json":        {"effects", "list", "--scope", "books", "--json"},
		"effects_list_status":      {"effects", "list", "--status", "started"},
		"effects_list_before":      {"effects", "list", "--before", "2026-02-03T10:00:00Z"},
		"effects_show":             {"effects", "show", "charge:payment:2"},
		"effects_show_json":        {"effects", "show", "charge:payment:2", "--scope", "shop", "--json"},
		"effects_show_downstream":  {"effects", "show", "11111111-0000-8000-8000-000000000000"},
		"effects_show_result":      {"effects", "show", "charge:payment:9", "--result"},
		"effects_show_result_json": {"effects", "show", "charge:payment:9", "--result", "--json"},
		"effects_show_alone":       {"effects", "show", "import:1"},
		"keys_list_claimed":        {"keys", "list", "--state", "claimed"},
		"keys_show_claimed":        {"keys", "show", "doubtful"},
		"keys_show_claimed_json":   {"keys", "show", "doubtful", "--json"},
		"why_resumes":              {"why", "resumes"},
		"why_doubtful":             {"why", "doubtful"},
		"why_doubtful_json":        {"why", "doubtful", "--json"},
		"why_left":                 {"why", "left"},
		"why_gone":                 {"why", "gone"},
		"why_paid":                 {"why", "paid"},
		"why_declined":             {"why", "declined"},
		"why_refused_effect":       {"why", "refused"},
		"why_claim_over":           {"why", "swept"},
		"why_sold":                 {"why", "sold"},
		"why_effect":               {"why", "charge:payment:2"},
		"why_effect_json":          {"why", "charge:payment:5", "--scope", "shop", "--json"},
		"why_effect_downstream":    {"why", "33333333-0000-8000-8000-000000000000"},
		"why_effect_alone":         {"why", "import:1"},
		"why_effect_alone_json":    {"why", "import:1", "--json"},
	}
	for name, args := range tests {
		t.Run(name, func(t *testing.T) {
			got := command(t, on(url), args...)
			wantResult(t, got, exitDone, "")
			golden(t, name, got.stdout)
		})
	}
}

func TestEffects_resultOnlyWhenAsked(t *testing.T) {
	url := withEffects(t)
	for _, args := range [][]string{
		{"effects", "list"}, {"effects", "list", "--json"},
		{"effects", "show", "charge:payment:5"}, {"effects", "show", "charge:payment:5", "--json"},
		{"why", "paid"}, {"why", "paid", "--json"}, {"why", "charge:payment:5"}, {"why", "charge:payment:5", "--json"},
	} {
		if got := command(t, on(url), args...); strings.Contains(got.stdout+got.stderr, "ch_5") {
			t.Errorf("%v showed the result: %s", args, got.stdout)
		}
	}
}

func TestEffectsList_pagesHoldEveryEffectOnce(t *testing.T) {
	url := withEffects(t)
	type page struct {
		Effects []struct {
			Scope string
			Key   string `json:"effect_key"`
		}
		Next string
	}
	read := func(args ...string) (p page) {
		if err := json.Unmarshal([]byte(command(t, on(url), append([]string{"effects", "list", "--json"}, args...)...).stdout), &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	all := read()
	if len(all.Effects) != 9 || all.Next != "" {
		t.Fatalf("got %d effects and next %q, want 9 and none", len(all.Effects), all.Next)
	}
	for _, limit := range []string{"1", "2", "4", "9"} {
		paged := read("--limit", limit)
		for next := paged.Next; next != ""; {
			more := read("--limit", limit, "--before", next)
			paged.Effects, next = append(paged.Effects, more.Effects...), more.Next
		}
		for i := range all.Effects {
			if len(paged.Effects) != len(all.Effects) || paged.Effects[i] != all.Effects[i] {
				t.Fatalf("with --limit %s: got %v, want %v", limit, paged.Effects, all.Effects)
			}
		}
	}
}

func TestEffectsList_saysHowToGoOnAndWhenThereIsNone(t *testing.T) {
	wantResult(t, command(t, on(withEffects(t)), "effects", "list", "--limit", "8"), exitDone,
		"idem: there may be more: --before 2026-02-02T10:00:01Z,shop,payment%3A2")
	wantResult(t, command(t, on(pgtest.NewURL(t)), "effects", "list"), exitDone, "idem: no effects")
}

func TestEffects_whatCannotBeShown(t *testing.T) {
	url := withEffects(t)
	execute(t, url, "insert into idem.applied_effects (scope, effect_key, status) values ('bank', 'import:1', 'absent')")
	const unknown = "it was never answered, or its time is over and it was swept; a request with it runs as new"
	long := strings.Repeat("e", 300)
	tests := []struct {
		args   []string
		code   int
		stderr string
	}{
		{[]string{"effects", "show", "import:1"}, exitUsage, "several scopes have the effect import:1; add --scope: bank, books"},
		{[]string{"effects", "show", "nothing"}, exitNotFound, "no scope has the effect nothing: it was never started"},
		{[]string{"effects", "show", "import:1", "--scope", "shop"}, exitNotFound, "the scope shop has no effect import:1: it was never started"},
		{[]string{"why", "import:1"}, exitUsage, "several scopes have the effect import:1; add --scope: bank, books"},
		{[]string{"why", "import:1", "--scope", "shop"}, exitNotFound, "import:1 of shop is not known: " + unknown},
		{[]string{"why", long}, exitNotFound, "there is no effect and no task " + long + ": it was never started"},
	}
	for _, tt := range tests {
		wantResult(t, command(t, on(url), tt.args...), tt.code, "idem: "+tt.stderr)
	}
}
