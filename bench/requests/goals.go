package main

import "github.com/idem-go/idem/bench/internal/ratio"

// goals are those of both ways to claim, and of watching.
func goals(r report) []ratio.Goal {
	var all []ratio.Goal
	for _, who := range []string{ours, oursLazy} {
		if !r.has(who) || !r.has(unprotected) {
			continue
		}
		rates := func(what, to, phase string, want float64) {
			perCPU := r.ratio(who, to, phase, perCPU)
			all = append(all, ratio.Goal{What: what, Subject: who, Want: want, Got: r.ratio(who, to, phase, rate), PerCPU: &perCPU})
		}
		least := map[string]float64{ours: 0.85, oursLazy: 0.95}[who]
		rates("fresh keys, rate to unprotected", unprotected, fresh, least)
		if r.has(article) {
			rates("fresh keys, rate to the article's", article, fresh, 1.4)
		}
		rates("50 % replays, rate to unprotected", unprotected, replays, 1)
		rates("64 duplicates at once, rate to unprotected", unprotected, dup64, 4)
		all = append(all,
			ratio.Goal{What: "fresh keys, WAL to unprotected", Subject: who, Want: 2.5, AtMost: true, Got: r.ratio(who, unprotected, fresh, wal)},
			ratio.Goal{What: "fresh keys, p99 to unprotected", Subject: who, Want: 1.25, AtMost: true, Got: r.ratio(who, unprotected, fresh, p99)},
			ratio.Goal{What: "other keys during the storm, rate to before", Subject: who, Want: 0.95, Got: r.of(who, storm, kept)})
	}
	if r.has(ours) && r.has(oursWatched) {
		for _, phase := range []string{fresh, replays} {
			perCPU := r.ratio(oursWatched, ours, phase, perCPU)
			all = append(all, ratio.Goal{What: phase + ", rate to idem unwatched", Subject: oursWatched, Want: 0.97,
				Got: r.ratio(oursWatched, ours, phase, rate), PerCPU: &perCPU})
		}
	}
	for i, g := range all {
		all[i] = g.Judged()
	}
	return all
}
