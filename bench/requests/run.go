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
	if err := b.startRedis(ctx, all); err != nil {
		return r, err
	}
	r = report{PostgreSQL: b.database.Server.Version(), Go: runtime.Version(), CPUs: runtime.NumCPU(),
		Reps: s.reps, Seconds: s.length.Seconds(), Clients: s.clients, Pool: s.pool}
	for rep := range s.reps {
		if err := b.repeat(ctx, all, rep, &r, progress); err != nil {
			return r, err
		}
	}
	r.Goals = goals(r)
	if s.profile != "" {
		err = b.profileAll(ctx, s.profile, progress)
	}
	return r, err
}

// repeat lets the subjects take turns in all phases, each in a server of this
// repetition's own: how a process happens to lie in memory is luck, of which each has
// some then.
func (b *bench) repeat(ctx context.Context, all []subject, rep int, r *report, progress io.Writer) (err error) {
	b.stopServers()
	if r.NotRun, err = b.startServers(all); err != nil {
		return err
	}
	fmt.Fprintf(progress, "repetition %d of %d: warming up\n", rep+1, b.settings.reps)
	for _, server := range b.servers { // connections, statements and caches are made
		if _, err := b.measure(ctx, server, replays); err != nil {
			return err
		}
	}
	for _, phase := range b.settings.phases {
		fmt.Fprintf(progress, "repetition %d of %d: %s\n", rep+1, b.settings.reps, phase)
		if err := b.takeTurns(ctx, rep, phase, r); err != nil {
			return err
		}
	}
	return nil
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

// startRedis starts Redis if a subject needs it and the machine has it.
func (b *bench) startRedis(ctx context.Context, all []subject) (err error) {
	if slices.ContainsFunc(all, func(s subject) bool { return s.redis }) {
		b.redis, err = machine.StartRedis(ctx)
	}
	if errors.Is(err, machine.ErrNoRedis) {
		return nil
	}
	return err
}

// startServers starts the servers of the subjects that can be run, and says of which it
// cannot, and why.
func (b *bench) startServers(all []subject) (notRun []string, err error) {
	address := ""
	if b.redis != nil {
		address = b.redis.Addr
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

func (b *bench) stopServers() {
	for _, s := range b.servers {
		s.stop()
	}
	b.servers = nil
}

func (b *bench) stop() error {
	b.stopServers()
	if b.redis != nil {
		b.redis.Stop()
	}
	if b.database == nil {
		return nil
	}
	return b.database.Close()
}
