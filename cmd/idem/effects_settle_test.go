package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// settle is a whole command line that settles an effect of shop's.
func settle(key string, more ...string) []string {
	return append([]string{"effects", "settle", key, "--scope", "shop", "--reason", "ticket 4711", "--yes"}, more...)
}

func TestEffectsSettle_appliedIsRecordedAndWrittenDown(t *testing.T) {
	url := withEffects(t)
	got := command(t, on(url), settle("charge:payment:2", "--applied", "--result", `{"id":"ch_2"}`, "--actor", "carol@desk")...)
	wantResult(t, got, exitDone, "")
	if want := "settled charge:payment:2 of shop as applied; the next retry goes on with its result\n"; got.stdout != want {
		t.Errorf("got %q, want %q", got.stdout, want)
	}
	shown := command(t, on(url), "effects", "show", "charge:payment:2", "--result").stdout
	for _, part := range []string{"applied\n", "\n{\"id\":\"ch_2\"}\n", "settled charge:payment:2 of shop as applied  by carol@desk:  ticket 4711\n"} {
		if !strings.Contains(shown, part) {
			t.Errorf("got %s\nwant %q in it", shown, part)
		}
	}
	story := command(t, on(url), "why", "doubtful").stdout
	if !strings.Contains(story, "the next retry goes on with it") || !strings.Contains(story, "settled charge:payment:2 of shop as applied  by carol@desk:  ticket 4711\n") {
		t.Errorf("got %s, want a claim that goes on, and who settled it", story)
	}
	wantResult(t, command(t, on(url), settle("charge:payment:2", "--absent")...), exitRefused,
		"idem: refused: the effect is settled: it is applied")
	wantResult(t, command(t, on(url), settle("charge:payment:2", "--applied", "--result", `{"id":"ch_9"}`)...), exitRefused,
		"idem: refused: the effect is settled: it is applied")
	wantResult(t, command(t, on(url), settle("charge:payment:2", "--applied", "--correct", "--result", `{"id":"ch_9"}`)...), exitDone, "")
	if shown := command(t, on(url), "effects", "show", "charge:payment:2", "--result").stdout; !strings.Contains(shown, "\n{\"id\":\"ch_9\"}\n") {
		t.Errorf("got %s, want the corrected result", shown)
	}
}

func TestEffectsSettle_absentAsJSON(t *testing.T) {
	url := withEffects(t)
	got := command(t, on(url), settle("charge:payment:3", "--absent", "--json")...)
	wantResult(t, got, exitDone, "")
	var change changeJSON
	var detail map[string]any
	if err := json.Unmarshal([]byte(got.stdout), &change); err != nil {
		t.Fatal(err)
	}
	if change.Action != "effect_settle" || change.Scope != "shop" || change.Key != "charge:payment:3" || change.Actor != whoRuns() {
		t.Errorf("got %+v", change)
	}
	if err := json.Unmarshal(change.Detail, &detail); err != nil || detail["status"] != "started" || detail["settled"] != "absent" || detail["cause_key"] != "left" {
		t.Errorf("got detail %s (%v), want what it was before", change.Detail, err)
	}
	wantResult(t, command(t, on(url), "keys", "release", "left", "--scope", "erin", "--reason", "r", "--yes"), exitDone, "")
}

func TestEffectsSettle_resultFromAFileOrStdin(t *testing.T) {
	url := withEffects(t)
	path := filepath.Join(t.TempDir(), "result.json")
	if err := os.WriteFile(path, []byte(`{"id":"ch_3"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	wantResult(t, command(t, on(url), settle("charge:payment:3", "--applied", "--result", "@"+path)...), exitDone, "")
	emptyConfigDir(t)
	var stdout, stderr bytes.Buffer
	args := settle("charge:payment:2", "--applied", "--result", "@-")
	code := run(t.Context(), args, strings.NewReader(`{"id":"ch_2"}`), &stdout, &stderr, func(name string) string { return on(url)[name] })
	wantResult(t, result{code, stdout.String(), stderr.String()}, exitDone, "")
	for effect, id := range map[string]string{"charge:payment:2": "ch_2", "charge:payment:3": "ch_3"} {
		if got := command(t, on(url), "effects", "show", effect, "--result"); !strings.Contains(got.stdout, id) {
			t.Errorf("got %s, want %s", got.stdout, id)
		}
	}
}

func TestEffectsSettle_refusals(t *testing.T) {
	url := withEffects(t)
	// Relative times, since these decide by the clock: one in flight, one whose call
	// may be under way though its owner is gone.
	execute(t, url, `update idem.idempotency_keys set lease_until = now() + interval '1 min' where key = 'left';
		update idem.applied_effects set call_until = '2999-01-01 00:00:00+00' where effect_key in ('charge:payment:1', 'charge:payment:2')`)
	t.Cleanup(func() { execute(t, url, "update idem.idempotency_keys set lease_until = now() where key = 'left'") })
	const underWay = "refused: the last call may still be under way until 2999-01-01T00:00:00Z; ask the other side again after that"
	tests := []struct {
		args   []string
		code   int
		stderr string
	}{
		{settle("charge:payment:5", "--absent"), exitRefused, "refused: the effect is settled: it is applied"},
		{settle("charge:payment:7", "--applied", "--result", "1"), exitRefused, "refused: the effect is settled: it is absent"},
		{settle("charge:payment:5", "--applied", "--correct", "--result", "1"), exitRefused, "refused: only a result that a person has given can be corrected: it is applied"},
		{settle("charge:payment:3", "--absent"), exitRefused, `refused: the effect is in flight: the request of "left" of "erin" works on it; wait until it has ended`},
		{settle("charge:payment:1", "--applied", "--result", "1"), exitRefused, underWay},
		{settle("charge:payment:2", "--absent"), exitRefused, underWay},
		{settle("charge:payment:2", "--absent", "--calls", "2"), exitRefused, "refused: the evidence is of another call: it has 1, not 2; look again"},
		{settle("charge:payment:8", "--absent"), exitNotFound, "the scope shop has no effect charge:payment:8: it was never started"},
	}
	before := command(t, on(url), "effects", "list", "--json").stdout
	for _, tt := range tests {
		wantResult(t, command(t, on(url), tt.args...), tt.code, "idem: "+tt.stderr)
	}
	if after := command(t, on(url), "effects", "list", "--json").stdout; after != before {
		t.Errorf("a refused settlement changed something: got\n%s\nwant\n%s", after, before)
	}
}

// printedSettlement is the command that idem why prints for a key, as whoever has asked
// the other side in vain completes it.
func printedSettlement(t *testing.T, url, key string) []string {
	t.Helper()
	story := command(t, on(url), "why", key).stdout
	_, line, _ := strings.Cut(story, "then: idem ")
	line, _, found := strings.Cut(line, " --applied --result JSON (or --absent) --reason TEXT --yes")
	if !found {
		t.Fatalf("no settlement is printed: %s", story)
	}
	return append(strings.Fields(line), "--absent", "--reason", "ticket 4711", "--yes")
}

// What idem why prints says of which call it speaks, so that whoever runs it later, when
// the effect was called again, is refused.
func TestWhy_thePrintedSettlementIsOfItsCall(t *testing.T) {
	for name, tt := range map[string]struct{ url, key, effect string }{
		"a request's": {withEffects(t), "doubtful", "charge:payment:2"},
		"a task's":    {withTasks(t), "102", "refund:payment:17"},
	} {
		t.Run(name, func(t *testing.T) {
			first := printedSettlement(t, tt.url, tt.key)
			execute(t, tt.url, "update idem.applied_effects set calls = calls + 1 where effect_key = '"+tt.effect+"'")
			wantResult(t, command(t, on(tt.url), first...), exitRefused,
				"idem: refused: the evidence is of another call: it has been called again: 2 calls; look again, and ask the other side again")
			again := printedSettlement(t, tt.url, tt.key)
			wantResult(t, command(t, on(tt.url), again...), exitDone, "")
		})
	}
}

func TestWhy_asksTheOtherSideAfterTheCall(t *testing.T) {
	url := withEffects(t)
	execute(t, url, "update idem.applied_effects set call_until = '2999-01-01 00:00:00+00' where effect_key = 'charge:payment:2'")
	const want = "The last call may be under way until 2999-01-01T00:00:00Z: ask the other side after that, by the downstream key, then: " +
		"idem effects settle charge:payment:2 --scope shop --calls 1 --applied"
	if got := command(t, on(url), "why", "doubtful").stdout; !strings.Contains(got, want) {
		t.Errorf("got %s, want %q in it", got, want)
	}
}

func TestKeysRelease_ofClaims(t *testing.T) {
	url := withEffects(t)
	execute(t, url, "update idem.idempotency_keys set lease_until = now() + interval '1 min' where key = 'left'")
	t.Cleanup(func() { execute(t, url, "update idem.idempotency_keys set lease_until = now() where key = 'left'") })
	line := func(key string) []string {
		return []string{"keys", "release", key, "--scope", "erin", "--reason", "r", "--yes"}
	}
	for _, key := range []string{"resumes", "doubtful", "declined"} {
		wantResult(t, command(t, on(url), line(key)...), exitRefused, "idem: refused: an effect of the request of "+key+
			" of erin is not absent; idem why tells which, and whether a retry goes on with it")
	}
	wantResult(t, command(t, on(url), line("left")...), exitRefused, "idem: refused: left of erin is in flight; wait until it has ended")
	wantResult(t, command(t, on(url), line("paid")...), exitRefused,
		"idem: refused: what the request of paid of erin wrote is committed; a second run would do it again")
	for _, key := range []string{"gone", "refused"} {
		wantResult(t, command(t, on(url), line(key)...), exitDone, "")
	}
	story := command(t, on(url), "why", "gone", "--scope", "erin").stdout
	if !strings.Contains(story, "released  by "+whoRuns()) || strings.Contains(story, "has the name of a key") {
		t.Errorf("got %s, want who released it, and nothing of an effect of the same name", story)
	}
}

func TestWhy_ofALiveClaim(t *testing.T) {
	url := withEffects(t)
	execute(t, url, "update idem.idempotency_keys set lease_until = now() + interval '1 min' where key = 'resumes'")
	t.Cleanup(func() { execute(t, url, "update idem.idempotency_keys set lease_until = now() where key = 'resumes'") })
	got := command(t, on(url), "why", "resumes")
	wantResult(t, got, exitDone, "")
	for _, part := range []string{"resumes of erin is running now, on a lease.\n", "Not decided: the request is still running.", "No. Both would be carried out.",
		"running now    yes: on a lease, by the process whose claim it is\n", "claim          00000000-0000-0000-0000-0000000000a1\n", "started, in flight"} {
		if !strings.Contains(got.stdout, part) {
			t.Errorf("got %s\nwant %q in it", got.stdout, part)
		}
	}
	var story storyJSON
	got = command(t, on(url), "why", "resumes", "--json")
	if err := json.Unmarshal([]byte(got.stdout), &story); err != nil || story.InFlight == nil || story.InFlight.LeaseUntil == nil || story.Retry != "waits" {
		t.Errorf("got %s (%v), want a key in flight on a lease", got.stdout, err)
	}
}
