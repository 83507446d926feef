package main

import "github.com/idem-go/idem/bench/internal/ratio"

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

// fastest is the peer with the highest median rate in a phase, or empty.
func (r report) fastest(phase string) (name string) {
	best := 0.0
	for _, s := range r.measured(phase) {
		if median := r.of(s.name, phase, rate).Median; !s.ours && median > best {
			name, best = s.name, median
		}
	}
	return name
}

// base is what the others' rates in a phase are divided by: those of the fastest peer, or
// of idem alone if it has none.
func (r report) base(phase string) string {
	if peer := r.fastest(phase); peer != "" {
		return peer
	}
	return ours
}

// measured are the subjects that were measured in a phase, in their order.
func (r report) measured(phase string) (all []subject) {
	for _, s := range subjects {
		if r.has(s.name, phase) {
			all = append(all, s)
		}
	}
	return all
}

func (r report) has(subject, phase string) bool {
	for _, f := range r.Figures {
		if f.Subject == subject && f.Phase == phase {
			return true
		}
	}
	return false
}

func rate(f figures) float64 { return f.Rate }

// perCPU is tasks per second of CPU time: what the rate would be if CPU alone were the
// limit. It hardly feels a machine's other tenants.
func perCPU(f figures) float64 {
	if f.cpu() == 0 {
		return 0
	}
	return 1e6 / f.cpu()
}

func p50(f figures) float64 { return f.P50 }

func p99(f figures) float64 { return f.P99 }

func twice(f figures) float64 { return float64(f.Twice) }

// wrong is what must not be after a kill.
func wrong(f figures) float64 { return float64(f.Twice + f.Lost + f.Undone) }
