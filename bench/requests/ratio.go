package main

import (
	"slices"

	"github.com/idem-go/idem/bench/internal/ratio"
)

// of takes one value from every measurement of a subject in a phase.
func (r report) of(subject, phase string, value func(figures) float64) ratio.Spread {
	var values []float64
	for _, f := range r.Figures {
		if f.Subject == subject && f.Phase == phase {
			values = append(values, value(f))
		}
	}
	return ratio.Of(values)
}

// ratio takes, of every repetition, a subject's value divided by that of another.
func (r report) ratio(subject, to, phase string, value func(figures) float64) ratio.Spread {
	var values []float64
	for _, f := range r.Figures {
		if f.Subject != subject || f.Phase != phase {
			continue
		}
		for _, g := range r.Figures {
			if g.Subject == to && g.Phase == phase && g.Rep == f.Rep && value(g) != 0 {
				values = append(values, value(f)/value(g))
			}
		}
	}
	return ratio.Of(values)
}

// base is what the others are divided by: unprotected, or idem alone where that was not run.
func (r report) base() string {
	if r.has(unprotected) {
		return unprotected
	}
	return ours
}

// has reports whether a subject was run.
func (r report) has(subject string) bool {
	return slices.ContainsFunc(r.Figures, func(f figures) bool { return f.Subject == subject })
}

func rate(f figures) float64 { return f.Rate }

// perCPU is requests per second of CPU time: what the rate would be if CPU alone
// were the limit. It hardly feels a machine's other tenants.
func perCPU(f figures) float64 {
	if f.cpu() == 0 {
		return 0
	}
	return 1e6 / f.cpu()
}

func wal(f figures) float64 { return f.WAL }

func p50(f figures) float64 { return f.P50 }

func p99(f figures) float64 { return f.P99 }

// kept is what is left of the other keys' rate during a storm.
func kept(f figures) float64 {
	if f.Before == 0 {
		return 0
	}
	return f.During / f.Before
}
