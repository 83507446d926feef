// Command requests measures what guarding POST /orders costs: the same handler
// without protection, with the article's algorithm, with fiber's middleware and
// with Idem, against one PostgreSQL, taking turns.
//
//	cd bench && go run ./requests
//
// It starts everything that it needs and prints ratios. Every server is a process
// of its own, so that its CPU time is its own; this process is the clients.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"
	"time"
)

// settings are a run's sizes.
type settings struct {
	reps    int
	length  time.Duration // of one measurement
	clients int           // connections with one request at a time each
	pool    int           // a server's connections to PostgreSQL
	slow    time.Duration // how long the storm's slow key takes
	phases  []string
	profile string // directory for profiles, or empty
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == serveArgument {
		fail(serve(os.Args[2:], os.Stdin, os.Stdout))
		return
	}
	s := settings{slow: time.Second, phases: phases}
	flag.IntVar(&s.reps, "reps", 5, "repetitions; a ratio is taken within one")
	secs := flag.Float64("secs", 2, "seconds of each measurement")
	flag.IntVar(&s.clients, "clients", 32, "connections, each with one request at a time")
	flag.IntVar(&s.pool, "pool", 32, "connections of a server to PostgreSQL")
	only := flag.String("subjects", "", "only subjects whose names match this `regexp`")
	out := flag.String("out", "markdown", "what to print: markdown or json")
	flag.StringVar(&s.profile, "profile", "", "also write, to this `directory`, where CPU time and WAL of fresh keys go")
	watching := flag.Bool("watching", false, "instead of peers, measure what metrics, logs and traces cost")
	flag.Parse()
	if *watching {
		s.phases = oneByOne
	}
	s.length = time.Duration(*secs * float64(time.Second))
	write, ok := map[string]func(io.Writer, report) error{"markdown": printMarkdown, "json": printJSON}[*out]
	chosen, err := matching(group(*watching), *only)
	if !ok || err != nil || len(chosen) == 0 || flag.NArg() > 0 || s.reps < 1 || s.length <= 0 || s.clients < 1 || s.pool < 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r, err := run(ctx, s, chosen, os.Stderr)
	fail(err)
	fail(write(os.Stdout, r))
}

func matching(all []subject, only string) ([]subject, error) {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(all), func(s subject) bool { return !pattern.MatchString(s.name) }), nil
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "requests:", err)
		os.Exit(1)
	}
}
