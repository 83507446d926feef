package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/idem-go/idem/bench/internal/ratio"
)

func printJSON(w io.Writer, r report) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// printMarkdown prints the goals, then a table per phase.
func printMarkdown(w io.Writer, r report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d CPUs for clients, workers and database; PostgreSQL %s, %s", r.CPUs, r.PostgreSQL, r.Go)
	if r.Node != "" {
		fmt.Fprintf(&b, ", Node %s", r.Node)
	}
	fmt.Fprintf(&b, "; %d repetitions, %d tasks, a worker works for %g s at most.\n", r.Reps, r.Tasks, r.Seconds)
	b.WriteString("A ratio is to the fastest peer (1.00), or to idem where that has none, in the same repetition; figures are medians, [lowest-highest].\n")
	for _, why := range r.NotRun {
		fmt.Fprintf(&b, "Not run: %s.\n", why)
	}
	if len(r.Goals) > 0 {
		b.WriteString("\n#### Goals\n\n" + ratio.GoalsHead)
	}
	for _, g := range r.Goals {
		fmt.Fprintln(&b, g.Row())
	}
	for _, phase := range []string{noop, insert, many, single} {
		r.writeRates(&b, phase)
	}
	r.writeLatency(&b)
	r.writeKilled(&b)
	r.writeSubjects(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (r report) writeRates(b *strings.Builder, phase string) {
	names := r.measured(phase)
	if len(names) == 0 {
		return
	}
	fmt.Fprintf(b, "\n#### %s\n\n", upperFirst(phase))
	b.WriteString("| subject | tasks/s | ratio | ratio per CPU time | WAL B/task | PostgreSQL CPU µs | process CPU µs | Redis CPU µs | keeps what is done |\n|---|---|---|---|---|---|---|---|---|\n")
	base := r.base(phase)
	for _, s := range names {
		median := func(digits int, value func(figures) float64) string {
			return fmt.Sprintf("%.*f", digits, r.of(s.name, phase, value).Median)
		}
		name, redis, keeps := s.name, "", ""
		if slices.ContainsFunc(r.Figures, func(f figures) bool { return f.CutShort && f.Subject == s.name && f.Phase == phase }) {
			name += " (not done in time)"
		}
		if s.redis {
			redis = median(1, func(f figures) float64 { return f.RedisCPU })
		}
		if s.keeps {
			keeps = "yes"
		}
		fmt.Fprintf(b, "| %s |\n", strings.Join([]string{name,
			r.of(s.name, phase, rate).Text(0),
			r.ratio(s.name, base, phase, rate).Text(2),
			r.ratio(s.name, base, phase, perCPU).Text(2),
			median(0, func(f figures) float64 { return f.WAL }),
			median(1, func(f figures) float64 { return f.PostgresCPU }),
			median(1, func(f figures) float64 { return f.ProcessCPU }),
			redis, keeps}, " | "))
	}
}

func (r report) writeLatency(b *strings.Builder) {
	names := r.measured(latency)
	if len(names) == 0 {
		return
	}
	fmt.Fprintf(b, "\n#### %s, on an idle queue at 50 a second\n\n", upperFirst(latency))
	b.WriteString("| subject | p50 ms | p99 ms |\n|---|---|---|\n")
	for _, s := range names {
		fmt.Fprintf(b, "| %s | %s | %s |\n", s.name, r.of(s.name, latency, p50).Text(1), r.of(s.name, latency, p99).Text(1))
	}
}

func (r report) writeKilled(b *strings.Builder) {
	names := r.measured(killed)
	if len(names) == 0 {
		return
	}
	fmt.Fprintf(b, "\n#### %s\n\n", upperFirst(killed))
	b.WriteString("| subject | tasks | effects at the kill | stuck | applied twice | lost | not done |\n|---|---|---|---|---|---|---|\n")
	for _, s := range names {
		text := func(value func(figures) float64) string { return r.of(s.name, killed, value).Text(0) }
		fmt.Fprintf(b, "| %s | %.0f | %s | %s | %s | %s | %s |\n", s.name,
			r.of(s.name, killed, func(f figures) float64 { return float64(f.Tasks) }).Median,
			text(func(f figures) float64 { return float64(f.Applied) }),
			text(func(f figures) float64 { return float64(f.Stuck) }),
			text(twice),
			text(func(f figures) float64 { return float64(f.Lost) }),
			text(func(f figures) float64 { return float64(f.Undone) }))
	}
}

// writeSubjects says with which settings each was run.
func (r report) writeSubjects(b *strings.Builder) {
	b.WriteString("\n#### Settings\n\n| subject | settings | connections |\n|---|---|---|\n")
	for _, s := range subjects {
		if slices.ContainsFunc(r.Figures, func(f figures) bool { return f.Subject == s.name }) {
			fmt.Fprintf(b, "| %s | %s | %d |\n", s.name, s.settings, s.pool)
		}
	}
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
