package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/idem-go/idem/bench/internal/ratio"
)

// report is what a run has found. Everything printed is derived from it.
type report struct {
	PostgreSQL string       `json:"postgresql"`
	Go         string       `json:"go"`
	Node       string       `json:"node,omitempty"`
	CPUs       int          `json:"cpus"`
	Reps       int          `json:"reps"`
	Tasks      int          `json:"tasks"`
	Seconds    float64      `json:"limit_seconds"`
	NotRun     []string     `json:"not_run,omitempty"` // and why
	Figures    []figures    `json:"figures"`
	Goals      []ratio.Goal `json:"goals"`
}

// run starts everything, lets the subjects take turns, and stops everything.
func run(ctx context.Context, s settings, all []subject, progress io.Writer) (r report, err error) {
	b := &bench{settings: s}
	defer func() { err = errors.Join(err, b.stop()) }()
	notRun, err := b.start(ctx, all, progress)
	if err != nil {
		return r, err
	}
	r, err = b.repeat(ctx, b.subjects, progress)
	r.NotRun = notRun
	if err == nil && s.profile != "" {
		err = b.profileAll(ctx, s.profile, progress)
	}
	return r, err
}

// repeat lets subjects take turns in all repetitions.
func (b *bench) repeat(ctx context.Context, all []subject, progress io.Writer) (report, error) {
	r := report{PostgreSQL: b.postgres.Server.Version(), Go: runtime.Version(), CPUs: runtime.NumCPU(),
		Reps: b.reps, Tasks: b.tasks, Seconds: b.limit.Seconds()}
	if b.node != nil {
		r.Node = b.node.version()
	}
	for rep := range b.reps {
		for _, phase := range phases {
			if phase == many || b.phases != nil && !b.phases.MatchString(phase) {
				continue // many is measured with noop
			}
			fmt.Fprintf(progress, "repetition %d of %d: %s\n", rep+1, b.reps, phase)
			if err := b.takeTurns(ctx, all, rep, phase, &r, progress); err != nil {
				return r, err
			}
		}
	}
	r.Goals = goals(r)
	return r, nil
}

// takeTurns measures one phase of every subject, as close together in time as it
// can be, since a ratio compares them. Another subject is first each time.
func (b *bench) takeTurns(ctx context.Context, all []subject, rep int, phase string, r *report, progress io.Writer) error {
	first := rep % len(all)
	for _, s := range slices.Concat(all[first:], all[:first]) {
		if !s.takesPart(phase) {
			continue
		}
		measured, err := b.measure(ctx, s, phase)
		if err != nil {
			return err
		}
		for _, f := range measured {
			f.Rep = rep + 1
			r.Figures = append(r.Figures, f)
			fmt.Fprintln(progress, "  "+strings.Join(f.words(), " "))
		}
	}
	return nil
}

// words are the figures in a line, for whoever waits.
func (f figures) words() []string {
	switch {
	case f.Left != nil:
		return []string{f.Subject + ":", fmt.Sprintf("%d applied, %d stuck, %d twice, %d lost, %d undone", f.Applied, f.Stuck, f.Twice, f.Lost, f.Undone)}
	case f.P99 > 0:
		return []string{f.Subject + ":", fmt.Sprintf("p50 %.1f ms, p99 %.1f ms", f.P50, f.P99)}
	}
	return []string{f.Subject + ",", f.Phase + ":", fmt.Sprintf("%.0f/s, %.0f B of WAL, %.0f µs of CPU", f.Rate, f.WAL, f.cpu())}
}
