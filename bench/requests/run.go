package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/idem-go/idem/bench/internal/machine"
	"github.com/idem-go/idem/bench/internal/ratio"
)

// bench is what a run has started.
type bench struct {
	settings settings
	database *database
	redis    *machine.Redis // nil if the machine has none
	servers  []*server
}

// report is what a run has found. Everything printed is derived from it.
type report struct {
	PostgreSQL string       `json:"postgresql"`
	Go         string       `json:"go"`
	CPUs       int          `json:"cpus"`
	Reps       int          `json:"reps"`
	Seconds    float64      `json:"seconds"`
	Clients    int          `json:"clients"`
	Pool       int          `json:"pool"`
	NotRun     []string     `json:"not_run,omitempty"` // and why
	Figures    []figures    `json:"figures"`
	Goals      []ratio.Goal `json:"goals"`
}

// run starts everything, lets the subjects take turns, and stops everything.
func run(ctx context.Context, s settings, all []subject, progress io.Writer) (r report, err error) {
	b := &bench{settings: s}
	defer func() { err = errors.Join(err, b.stop()) }()
	if b.database, err = startDatabase(ctx, progress); err != nil {
		return r, err
	}
	r = report{PostgreSQL: b.database.Server.Version(), Go: runtime.Version(), CPUs: runtime.NumCPU(),
		Reps: s.reps, Seconds: s.length.Seconds(), Clients: s.clients, Pool: s.pool}
	if r.NotRun, err = b.startServers(ctx, all); err != nil {
		return r, err
	}
	for _, server := range b.servers { // connections, statements and caches are made
		fmt.Fprintf(progress, "warming up: %s\n", server.name)
		if _, err := b.measure(ctx, server, replays); err != nil {
			return r, err
		}
	}
	for rep := range s.reps {
		for _, phase := range phases {
			fmt.Fprintf(progress, "repetition %d of %d: %s\n", rep+1, s.reps, phase)
			if err := b.takeTurns(ctx, rep, phase, &r); err != nil {
				return r, err
			}
		}
	}
	r.Goals = goals(r)
	if s.profile != "" {
		err = b.profileAll(ctx, s.profile, progress)
	}
	return r, err
}

// takeTurns measures one phase of every subject, as close together in time as it
// can be, since a ratio compares them. Another subject is first each time.
func (b *bench) takeTurns(ctx context.Context, rep int, phase string, r *report) error {
	first := rep % len(b.servers)
	for _, server := range slices.Concat(b.servers[first:], b.servers[:first]) {
		if !server.takesPart(phase) {
			continue
		}
		f, err := b.measure(ctx, server, phase)
		if err != nil {
			return err
		}
		f.Rep = rep + 1
		r.Figures = append(r.Figures, f)
	}
	return nil
}

func (b *bench) startServers(ctx context.Context, all []subject) (notRun []string, err error) {
	address := ""
	if slices.ContainsFunc(all, func(s subject) bool { return s.redis }) {
		b.redis, err = machine.StartRedis(ctx)
		if err != nil && !errors.Is(err, machine.ErrNoRedis) {
			return nil, err
		}
		if b.redis != nil {
			address = b.redis.Addr
		}
	}
	for _, s := range all {
		if s.redis && b.redis == nil {
			notRun = append(notRun, fmt.Sprintf("%s: %v", s.name, machine.ErrNoRedis))
			continue
		}
		started, err := startServer(s, b.database.Server.URL(), b.settings.pool, address)
		if err != nil {
			return nil, err
		}
		b.servers = append(b.servers, started)
	}
	return notRun, nil
}

// empty forgets all keys and orders.
func (b *bench) empty(ctx context.Context) error {
	if b.redis != nil {
		if err := b.redis.Client.FlushDB(ctx).Err(); err != nil {
			return err
		}
	}
	return b.database.empty(ctx)
}

func (b *bench) stop() error {
	for _, s := range b.servers {
		s.stop()
	}
	if b.redis != nil {
		b.redis.Stop()
	}
	if b.database == nil {
		return nil
	}
	return b.database.Close()
}
