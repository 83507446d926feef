package main

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// atOnce is how many enqueue single tasks at once.
	atOnce = 10
	// pace is the time between two tasks of an idle queue: 50 a second.
	pace = 20 * time.Millisecond
	// warming are how many of those come first and are not counted: connections and
	// statements are made.
	warming = 25
)

// single enqueues n tasks one by one.
func (a *actor) single(ctx context.Context, n int) error {
	return inParallel(ctx, atOnce, n, func(ctx context.Context, i int) error {
		return a.peer.enqueue(ctx, task{ID: int64(i)})
	})
}

// many enqueues n tasks, a batch at once.
func (a *actor) many(ctx context.Context, n int) error {
	for from := 1; from <= n; from += batch {
		tasks := make([]task, min(batch, n-from+1))
		for i := range tasks {
			tasks[i].ID = int64(from + i)
		}
		if err := a.peer.enqueueMany(ctx, tasks); err != nil {
			return err
		}
	}
	return nil
}

// paced enqueues n tasks at the pace, however long each takes, after those that warm up.
func (a *actor) paced(ctx context.Context, n int) error {
	g, ctx := errgroup.WithContext(ctx)
	start := time.Now()
	for i := range warming + n {
		time.Sleep(time.Until(start.Add(time.Duration(i) * pace)))
		g.Go(func() error {
			t := task{ID: int64(i + 1)}
			if i >= warming {
				t.At = time.Now().UnixNano()
			}
			return a.peer.enqueue(ctx, t)
		})
	}
	return g.Wait()
}

// inParallel calls fn with 1 to n.
func inParallel(ctx context.Context, goroutines, n int, fn func(context.Context, int) error) error {
	var last atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range goroutines {
		g.Go(func() error {
			for i := int(last.Add(1)); i <= n; i = int(last.Add(1)) {
				if err := fn(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}
