package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// measure runs one phase of one subject on empty tables.
func (b *bench) measure(ctx context.Context, s subject, phase string) ([]figures, error) {
	if err := b.empty(ctx); err != nil {
		return nil, err
	}
	var all []figures
	var err error
	switch phase {
	case single:
		all, err = b.enqueue(ctx, s, order{Do: doSingle, N: b.single}, single)
	case noop:
		all, err = b.worked(ctx, s, noop)
	case insert:
		all, err = b.worked(ctx, s, insert)
	case latency:
		all, err = b.idle(ctx, s)
	case killed:
		all, err = b.killed(ctx, s)
	}
	if err != nil {
		return nil, fmt.Errorf("%s, %s: %w", s.name, phase, err)
	}
	return all, nil
}

// read reads the meters, of a subject's process after its last answer.
func (b *bench) read(ctx context.Context, last answer) (m meters, err error) {
	m.process = time.Duration(last.CPU) * time.Microsecond
	if m.wal, err = b.postgres.WAL(ctx); err != nil {
		return m, err
	}
	if b.redis != nil {
		if m.redis, err = b.redis.CPU(ctx); err != nil {
			return m, err
		}
	}
	m.postgres, err = b.postgres.CPU()
	return m, err
}

// enqueue has tasks enqueued in a process of its own.
func (b *bench) enqueue(ctx context.Context, s subject, o order, phase string) ([]figures, error) {
	client, err := b.client(s)
	if err != nil {
		return nil, err
	}
	defer client.end()
	ready, err := client.tell(order{Do: doReady})
	if err != nil {
		return nil, err
	}
	before, err := b.read(ctx, ready)
	if err != nil {
		return nil, err
	}
	done, err := client.tell(o)
	if err != nil {
		return nil, err
	}
	after, err := b.read(ctx, done)
	if err != nil {
		return nil, err
	}
	f := figures{Subject: s.name, Phase: phase, Rate: float64(o.N) / done.Seconds}
	f.per(o.N, before, after)
	waiting, err := b.storeOf(s).unfinished(ctx)
	if err == nil && waiting != o.N {
		err = fmt.Errorf("%d tasks wait, want %d", waiting, o.N)
	}
	return []figures{f}, err
}

// worked has n tasks enqueued, then done by a fresh worker. What enqueueing them takes is
// a measurement, too, once a repetition.
func (b *bench) worked(ctx context.Context, s subject, phase string) ([]figures, error) {
	all, worker, err := b.piled(ctx, s, phase)
	if err != nil {
		return nil, err
	}
	defer worker.end()
	f, err := b.timed(ctx, s, worker)
	if err != nil {
		return nil, err
	}
	f.Subject, f.Phase = s.name, phase
	if !s.takesPart(many) || phase == insert {
		all = nil
	}
	if _, err := worker.tell(order{Do: doStop}); err != nil {
		return nil, err
	}
	return append(all, f), b.counts(ctx, s, phase)
}

// piled has n tasks enqueued and starts a process to work them off.
func (b *bench) piled(ctx context.Context, s subject, phase string) ([]figures, *process, error) {
	all, err := b.enqueue(ctx, s, order{Do: doMany, N: b.tasks}, many)
	if err == nil {
		err = b.storeOf(s).analyze(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	worker, err := b.worker(s, phase == insert)
	return all, worker, err
}

// timed is a worker's time for the tasks that wait. The clock runs from the order to work
// until none is unfinished in the store.
func (b *bench) timed(ctx context.Context, s subject, worker *process) (f figures, err error) {
	ready, err := worker.tell(order{Do: doReady})
	if err != nil {
		return f, err
	}
	before, err := b.read(ctx, ready)
	if err != nil {
		return f, err
	}
	start := time.Now()
	if _, err := worker.tell(order{Do: doWork}); err != nil {
		return f, err
	}
	unfinished, err := b.finish(ctx, s, worker, b.tasks, b.limit)
	took := time.Since(start)
	if err != nil {
		return f, err
	}
	last, err := worker.tell(order{Do: doReady})
	if err != nil {
		return f, err
	}
	after, err := b.read(ctx, last)
	if err != nil {
		return f, err
	}
	done := b.tasks - unfinished
	if done == 0 {
		return f, errors.New("no task was done")
	}
	f.CutShort, f.Rate = unfinished > 0, float64(done)/took.Seconds()
	f.per(done, before, after)
	return f, nil
}

// finish waits until n tasks are done, in the store too, or the time is over, and returns
// how many are not.
func (b *bench) finish(ctx context.Context, s subject, worker *process, n int, limit time.Duration) (unfinished int, err error) {
	end := time.Now().Add(limit)
	if _, err := worker.tell(order{Do: doAwait, N: n, Limit: int(limit.Milliseconds())}); err != nil {
		return 0, err
	}
	err = eventually(ctx, max(time.Until(end), time.Millisecond), func() (bool, error) {
		var err error
		unfinished, err = b.storeOf(s).unfinished(ctx)
		return unfinished == 0, err
	})
	if errors.Is(err, errLate) {
		err = nil
	}
	return unfinished, err
}

// counts refuses figures that were not come by honestly: of a worker that has stopped,
// each task that is done has one receipt, and no other has.
func (b *bench) counts(ctx context.Context, s subject, phase string) error {
	unfinished, err := b.storeOf(s).unfinished(ctx)
	if err != nil {
		return err
	}
	rows, tasks, err := b.receipts(ctx)
	if err != nil {
		return err
	}
	want := 0
	if phase == insert {
		want = b.tasks - unfinished
	}
	if rows != want || tasks != want {
		return fmt.Errorf("%d receipts of %d tasks, want %d", rows, tasks, want)
	}
	return nil
}

// idle measures how long tasks wait that come one by one: enqueued by one process and
// started in another.
func (b *bench) idle(ctx context.Context, s subject) ([]figures, error) {
	worker, err := b.worker(s, false)
	if err != nil {
		return nil, err
	}
	defer worker.end()
	if _, err := worker.tell(order{Do: doWork}); err != nil {
		return nil, err
	}
	client, err := b.client(s)
	if err != nil {
		return nil, err
	}
	defer client.end()
	if _, err := client.tell(order{Do: doPaced, N: b.latency, Limit: (warming + b.latency) * int(pace.Milliseconds())}); err != nil {
		return nil, err
	}
	seen, err := worker.tell(order{Do: doAwait, N: warming + b.latency, Limit: int(b.limit.Milliseconds())})
	if err != nil {
		return nil, err
	}
	if len(seen.Waits) != b.latency {
		return nil, fmt.Errorf("%d tasks were started, want %d", len(seen.Waits), b.latency)
	}
	f := figures{Subject: s.name, Phase: latency, Tasks: b.latency, P50: percentile(seen.Waits, 0.50), P99: percentile(seen.Waits, 0.99)}
	_, err = worker.tell(order{Do: doStop})
	return []figures{f}, err
}
