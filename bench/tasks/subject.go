package main

import (
	"slices"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/bench/internal/watched"
	"github.com/idem-go/idem/queue"
)

// subject is one way to have background work done.
type subject struct {
	name     string
	settings string // printed
	pool     int    // connections of its process to PostgreSQL, at most
	// open makes it, in a process that is this program once more; nil, if it runs in one
	// of Node.
	open opener
	node bool
	// store is the directory of sql/ with what is to be known of its tables.
	store string
	redis bool // Redis keeps its tasks instead
	ours  bool
	// once says that an effect in the database and the end of its task commit together.
	once bool
	// keeps says that finished tasks are kept.
	keeps bool
	// slow says that it needs minutes where others need seconds, and is killed among a
	// tenth of their tasks.
	slow bool
	// only are the phases in which it takes part; nil means all.
	only []string
	// watched says that it is the library with somebody watching, which is compared with
	// the library alone, and not with others.
	watched bool
}

// The subjects that goals name.
const (
	ours        = "idem"
	oursKept    = "idem, retained"
	oursPolls   = "idem, polling only"
	oursWatched = "idem, watched"
	riverBest   = "River"
	riverTx     = "River, JobCompleteTx"
	graphile    = "graphile-worker"
)

var subjects = slices.Concat(peers, watchings)

// peers are compared with each other.
var peers = []subject{
	{name: ours, store: "idem", pool: 40, open: newForgetting(queue.Config{}), ours: true, once: true,
		settings: "`queue.Forget`, no keys; no-op tasks 1,000 at once, others the default of 32"},
	{name: riverBest, store: "river", pool: 50, open: newRiver(false), keeps: true,
		settings: "as its own benchmark: 2000 workers, FetchCooldown 2 ms, FetchPollInterval 20 ms; `InsertManyFast`"},
	{name: graphile, store: "graphile", pool: 25, node: true,
		settings: "its performance preset: concurrentJobs 24, localQueue 500, completeJobBatchDelay and failJobBatchDelay 0"},
	{name: oursKept, store: "idem", pool: 40, open: newRetaining(), ours: true, once: true, keeps: true,
		settings: "as idem, but a key for each task, and finished tasks are kept for 7 days"},
	{name: "pg-boss", store: "pgboss", pool: 25, node: true, keeps: true,
		settings: "batchSize 100, localConcurrency 4, burstWhenBatchFull, useListenNotify"},
	{name: "asynq", redis: true, pool: 50, open: newAsynq,
		settings: "Redis (appendfsync everysec), 100 workers, TaskCheckInterval 10 ms; batches by 32 at once"},
	{name: riverTx, store: "river", pool: 50, open: newRiver(true), once: true, keeps: true, slow: true, only: []string{noop, insert, killed},
		settings: "River as above, each task completed in the transaction of its handler"},
	{name: "gue", store: "gue", pool: gueWorkers + 1, open: newGue, once: true, slow: true,
		settings: "100 workers, poll interval 500 ms, RunAtPollStrategy; handlers in the task's transaction"},
	{name: "River, as it comes", store: "river", pool: 50, open: newRiverAsItComes(), keeps: true, slow: true, only: []string{noop, insert, latency, killed},
		settings: "100 workers, otherwise defaults"},
	{name: oursPolls, store: "idem", pool: 40, open: newForgetting(queue.Config{PollOnly: true}), ours: true, once: true, only: []string{latency},
		settings: "idem with `PollOnly`, every second"},
}

// watchings are ways to watch it. The first is not to: how far it is from 1 is the noise.
var watchings = []subject{
	watching("idem, again", nil, "the same as idem, once more"),
	watching(oursWatched, watched.Quiet, "with metrics and logs"),
	watching("idem, watched at Debug", watched.Verbose, "with metrics and logs, and a line for each task"),
	watching("idem, watched, 1 of 100 traced", watched.Traced(0.01), "with metrics, logs and traces, of which one in a hundred is kept"),
	watching("idem, watched, all traced", watched.Traced(1), "with metrics, logs and traces, all of which are kept"),
}

func watching(name string, watch func() (idem.Config, error), settings string) subject {
	return subject{name: name, store: "idem", pool: 40, open: newWatched(watch), ours: true, once: true, only: []string{noop, insert},
		watched: true, settings: settings}
}

func (s subject) takesPart(phase string) bool { return s.only == nil || slices.Contains(s.only, phase) }

// killedAmong is of how many tasks a kill is in the middle.
func (s subject) killedAmong(n int) int {
	if s.slow {
		return n / 10
	}
	return n
}

// patience bounds what a subject is given to end what a killed worker has left.
const patience = 45 * time.Second
