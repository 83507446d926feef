package main

import (
	"strings"
	"testing"
)

// A slow second repetition slows both sides of a ratio, so it does not count.
func TestGoals_areJudgedByRatiosWithinARepetition(t *testing.T) {
	speed := map[string]float64{ours: 3000, oursKept: 1100, riverBest: 1000, graphile: 2000, riverTx: 600, "gue": 100}
	var r report
	for rep, slow := range []float64{1, 0.5, 1} {
		for name, perSecond := range speed {
			for _, phase := range []string{many, noop, insert} {
				r.Figures = append(r.Figures, figures{Subject: name, Phase: phase, Rep: rep, Rate: perSecond * slow, PostgresCPU: 1e6 / perSecond})
			}
			r.Figures = append(r.Figures, figures{Subject: name, Phase: latency, Rep: rep, P50: 1, P99: 10 * perSecond},
				figures{Subject: name, Phase: killed, Rep: rep, Left: &Left{Twice: map[string]int{oursKept: rep % 2}[name]}})
		}
	}
	want := map[string]struct {
		got float64
		met bool
	}{
		"idem: no-op tasks, rate to graphile-worker's":                         {1.5, true},
		"idem: tasks with one INSERT, rate to graphile-worker's":               {1.5, true},
		"idem: tasks with one INSERT, rate to River, JobCompleteTx's":          {5, true},
		"idem: enqueue 1000 at once, rate to graphile-worker's":                {1.5, false},
		"idem, retained: no-op tasks, rate to River's":                         {1.1, true},
		"idem, retained: tasks with one INSERT, rate to River's":               {1.1, true},
		"idem: from enqueueing to start, p50 to graphile-worker's":             {1, true},
		"idem: from enqueueing to start, p99 to graphile-worker's":             {1.5, false},
		"idem: kill -9 in the middle: applied twice, lost or undone":           {0, true},
		"idem, retained: kill -9 in the middle: applied twice, lost or undone": {1, false},
	}
	r.Goals = goals(r)
	if len(r.Goals) != len(want) {
		t.Errorf("%d goals, want %d", len(r.Goals), len(want))
	}
	for _, g := range r.Goals {
		w, ok := want[g.Subject+": "+g.What]
		if !ok || g.Got.Median != w.got || g.Met != w.met {
			t.Errorf("%s: %s: %+v, met %v, want %v", g.Subject, g.What, g.Got, g.Met, w)
		}
	}
	var page strings.Builder
	if err := printMarkdown(&page, r); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"| no-op tasks, rate to graphile-worker's | idem | ≥ 1.50 | 1.50 [1.50-1.50] | 1.50 [1.50-1.50] | met |",
		"| from enqueueing to start, p99 to graphile-worker's | idem | ≤ 1.00 | 1.50 [1.50-1.50] |  | **missed** |",
		"| gue | 100 [50-100] | 0.05 [0.05-0.05] | 0.05 [0.05-0.05] | 0 | 10000.0 | 0.0 |  |  |",
	} {
		if !strings.Contains(page.String(), line) {
			t.Errorf("the page lacks\n%s\nin\n%s", line, page.String())
		}
	}
}
