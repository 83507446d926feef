package main

import (
	"strings"
	"testing"
)

// A slow second repetition slows both sides of a ratio, so it does not count.
func TestGoals_areJudgedByRatiosWithinARepetition(t *testing.T) {
	var r report
	for rep, slow := range []float64{1, 0.5, 1} {
		for _, phase := range phases {
			plain := figures{Subject: unprotected, Phase: phase, Rep: rep, Rate: 1000 * slow, P99: 10, WAL: 200, PostgresCPU: 60, ServerCPU: 40}
			guarded := figures{Subject: ours, Phase: phase, Rep: rep, Rate: 900 * slow, P99: 13, WAL: 400, PostgresCPU: 80, ServerCPU: 45,
				Before: 1000 * slow, During: 990 * slow}
			r.Figures = append(r.Figures, plain, guarded)
		}
	}
	want := map[string]struct {
		got float64
		met bool
	}{
		"fresh keys, rate to unprotected":             {0.9, true},
		"50 % replays, rate to unprotected":           {0.9, false},
		"64 duplicates at once, rate to unprotected":  {0.9, false},
		"fresh keys, WAL to unprotected":              {2, true},
		"fresh keys, p99 to unprotected":              {1.3, false},
		"other keys during the storm, rate to before": {0.99, true},
	}
	got := goals(r)
	if len(got) != len(want) {
		t.Errorf("%d goals, want %d", len(got), len(want))
	}
	for _, g := range got {
		w, ok := want[g.What]
		if !ok || g.Got.Median != w.got || g.Got.Min != w.got || g.Got.Max != w.got || g.Met != w.met {
			t.Errorf("%s: %+v, met %v, want %v", g.What, g.Got, g.Met, w)
		}
		if g.PerCPU != nil && g.PerCPU.Median != 0.8 {
			t.Errorf("%s: per CPU %v, want 0.8", g.What, g.PerCPU.Median)
		}
	}
	r.Goals = got
	var page strings.Builder
	if err := printMarkdown(&page, r); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"| fresh keys, rate to unprotected | idem | ≥ 0.85 | 0.90 [0.90-0.90] | 0.80 [0.80-0.80] | met |",
		"| fresh keys, p99 to unprotected | idem | ≤ 1.25 | 1.30 [1.30-1.30] |  | **missed** |",
		"| idem | 1000 [500-1000] | 990 [495-990] | 0.99 [0.99-0.99] |",
	} {
		if !strings.Contains(page.String(), line) {
			t.Errorf("the page lacks\n%s\nin\n%s", line, page.String())
		}
	}
}
