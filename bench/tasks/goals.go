package main

import "github.com/idem-go/idem/bench/internal/ratio"

// goals are what the library is to reach beside its peers, as far as both were measured.
func goals(r report) (all []ratio.Goal) {
	add := func(who, phase, to string, g ratio.Goal) {
		if to == "" || !r.has(who, phase) || !r.has(to, phase) {
			return
		}
		g.Subject = who
		all = append(all, g.Judged())
	}
	rates := func(who, phase, to string, want float64) {
		perCPU := r.ratio(who, to, phase, perCPU)
		add(who, phase, to, ratio.Goal{What: phase + ", rate to " + to + "'s", Want: want, Got: r.ratio(who, to, phase, rate), PerCPU: &perCPU})
	}
	rates(ours, noop, r.fastest(noop), 1.5)
	rates(ours, insert, r.fastest(insert), 1)
	rates(ours, insert, riverTx, 3.5)
	rates(oursKept, noop, riverBest, 1)
	rates(oursKept, insert, riverBest, 1)
	rates(ours, many, r.fastest(many), 2)
	for _, phase := range []string{noop, insert} {
		rates(oursWatched, phase, ours, 0.97)
	}
	waits := func(what string, value func(figures) float64) {
		add(ours, latency, graphile, ratio.Goal{What: latency + ", " + what + " to " + graphile + "'s", Want: 1, AtMost: true, Got: r.ratio(ours, graphile, latency, value)})
	}
	waits("p50", p50)
	waits("p99", p99)
	for _, who := range []string{ours, oursKept} {
		g := ratio.Goal{What: killed + ": applied twice, lost or undone", AtMost: true, Got: r.of(who, killed, wrong)}
		g.Got.Median = g.Got.Max // not once
		add(who, killed, who, g)
	}
	return all
}
