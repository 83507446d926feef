// Command tasks measures what background work costs: Idem's queue beside River, gue,
// asynq, graphile-worker and pg-boss, on one PostgreSQL, taking turns.
//
//	cd bench && go run ./tasks
//
// It starts everything that it needs and prints ratios. What enqueues and what works is a
// process of its own, so that its CPU time is its own, and it can be killed.
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
	reps     int
	tasks    int           // that are enqueued 1000 at once, and worked off
	single   int           // that are enqueued one by one
	latency  int           // that come to an idle queue
	kill     int           // among which a worker is killed
	limit    time.Duration // of one worker's time
	phases   *regexp.Regexp
	profile  string // directory for profiles, or empty
	packages string // directory that keeps Node's packages, or empty
}

func (s settings) valid() bool {
	return s.reps > 0 && s.tasks > 0 && s.single > 0 && s.latency > 0 && s.kill >= 30 && s.limit > 0
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == processArgument {
		fail(serve(os.Stdin, os.Stdout))
		return
	}
	var s settings
	flag.IntVar(&s.reps, "reps", 5, "repetitions; a ratio is taken within one")
	flag.IntVar(&s.tasks, "n", 50_000, "tasks that are enqueued 1000 at once, and worked off")
	flag.IntVar(&s.single, "single", 5_000, "tasks that are enqueued one by one")
	flag.IntVar(&s.latency, "latency", 250, "tasks that come to an idle queue, 50 a second")
	flag.IntVar(&s.kill, "kill", 30_000, "tasks in whose middle a worker is killed, at least 30; a tenth of them for slow subjects")
	flag.DurationVar(&s.limit, "limit", 20*time.Second, "how long a worker works at most; its rate is that of what it has done by then")
	only := flag.String("subjects", "", "only subjects whose names match this `regexp`")
	watching := flag.Bool("watching", false, "instead of peers, measure what metrics, logs and traces cost")
	flag.Func("phases", "only phases whose names match this `regexp`", func(text string) (err error) {
		s.phases, err = regexp.Compile(text)
		return err
	})
	flag.StringVar(&s.packages, "packages", "", "keep Node's packages in this `directory` for the next run")
	flag.StringVar(&s.profile, "profile", "", "also write, to this `directory`, where CPU time and WAL of working go")
	out := flag.String("out", "markdown", "what to print: markdown or json")
	flag.Parse()
	if *watching && s.phases == nil {
		s.phases = regexp.MustCompile(noop + "|" + insert)
	}
	write, known := map[string]func(io.Writer, report) error{"markdown": printMarkdown, "json": printJSON}[*out]
	chosen, err := matching(group(*watching), *only)
	if err != nil || !known || flag.NArg() > 0 || len(chosen) == 0 || !s.valid() {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r, err := run(ctx, s, chosen, os.Stderr)
	fail(err)
	fail(write(os.Stdout, r))
}

// group are the subjects that are compared: all peers, or the library alone and watched.
func group(watching bool) []subject {
	return slices.DeleteFunc(slices.Clone(subjects), func(s subject) bool { return s.watched != watching && s.name != ours })
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
		fmt.Fprintln(os.Stderr, "tasks:", err)
		os.Exit(1)
	}
}
