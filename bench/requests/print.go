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
	fmt.Fprintf(&b, "%d CPUs for clients, server and database; PostgreSQL %s, %s; %d repetitions of %g s, %d clients, pool of %d.\n",
		r.CPUs, r.PostgreSQL, r.Go, r.Reps, r.Seconds, r.Clients, r.Pool)
	fmt.Fprintf(&b, "A ratio is to %s in the same repetition; figures are medians, [lowest-highest].\n", r.base())
	for _, why := range r.NotRun {
		fmt.Fprintf(&b, "Not run: %s.\n", why)
	}
	b.WriteString("\n### Goals\n\n" + ratio.GoalsHead)
	for _, g := range r.Goals {
		fmt.Fprintln(&b, g.Row())
	}
	for _, phase := range phases[:3] {
		if len(r.names(phase)) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n\n", upperFirst(phase))
		b.WriteString("| subject | requests/s | ratio | ratio per CPU time | p50 ms | p99 ms | WAL B/request | PostgreSQL CPU µs | server CPU µs |" +
			" bytes per key | orders/keys | differing answers |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n")
		for _, name := range r.names(phase) {
			fmt.Fprintln(&b, r.row(name, phase))
		}
	}
	r.writeLeases(&b)
	r.writeStorm(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (r report) row(name, phase string) string {
	median := func(digits int, value func(figures) float64) string {
		return fmt.Sprintf("%.*f", digits, r.of(name, phase, value).Median)
	}
	bytes := median(0, func(f figures) float64 { return f.KeyBytes })
	if bytes == "0" {
		bytes = ""
	}
	return "| " + strings.Join([]string{name,
		r.of(name, phase, rate).Text(0),
		r.ratio(name, r.base(), phase, rate).Text(2),
		r.ratio(name, r.base(), phase, perCPU).Text(2),
		median(2, p50),
		median(2, p99),
		median(0, wal),
		median(1, func(f figures) float64 { return f.PostgresCPU }),
		median(1, func(f figures) float64 { return f.ServerCPU }),
		bytes,
		median(2, func(f figures) float64 { return float64(f.Orders) / float64(f.Keys) }),
		median(0, func(f figures) float64 { return float64(f.Differing) }),
	}, " | ") + " |"
}

func (r report) writeStorm(b *strings.Builder) {
	names := r.names(storm)
	if len(names) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### Storm: %d duplicates of one slow key, %d connections with other keys\n\n", stormDuplicates, stormOthers)
	b.WriteString("| subject | others/s before | others/s during | ratio |\n|---|---|---|---|\n")
	for _, name := range names {
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", name,
			r.of(name, storm, func(f figures) float64 { return f.Before }).Text(0),
			r.of(name, storm, func(f figures) float64 { return f.During }).Text(0),
			r.of(name, storm, kept).Text(2))
	}
}

// writeLeases compares a request on a lease with the two that it is chosen over.
func (r report) writeLeases(b *strings.Builder) {
	if !r.has(oursLease) {
		return
	}
	b.WriteString("\n### A request on a lease, without a call\n\n| phase | beside | rate | per CPU time | p50 | p99 | WAL |\n|---|---|---|---|---|---|---|\n")
	for _, phase := range oneByOne {
		for _, other := range []string{ours, usualLease} {
			if !r.has(other) {
				continue
			}
			fmt.Fprintf(b, "| %s | %s |", phase, other)
			for _, value := range []func(figures) float64{rate, perCPU, p50, p99, wal} {
				fmt.Fprintf(b, " %s |", r.ratio(oursLease, other, phase, value).Text(2))
			}
			b.WriteString("\n")
		}
	}
}

// names are the subjects that were measured in a phase, in their order.
func (r report) names(phase string) []string {
	var names []string
	for _, s := range subjects {
		if slices.ContainsFunc(r.Figures, func(f figures) bool { return f.Subject == s.name && f.Phase == phase }) {
			names = append(names, s.name)
		}
	}
	return names
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
