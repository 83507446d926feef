package idemtest

import (
	"context"
	"iter"
	"runtime"
	"sync"
	"sync/atomic"
)

// mostAtOnce bounds the points that are tried at a time. Each has a handful of
// connections, and a server's usual limit is 100.
const mostAtOnce = 4

// backward calls try for every i from n-1 to 0, several at a time, and yields
// each result when it is there. From the end, since what a handler does wrong
// shows where there is much to undo. It ends early when ctx does. Nothing runs any
// more when the loop is left.
func backward(ctx context.Context, n int, try func(ctx context.Context, i int) error) iter.Seq2[int, error] {
	type result struct {
		i   int
		err error
	}
	return func(yield func(int, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		results := make(chan result, n) // nobody waits to be heard
		var left atomic.Int64
		left.Store(int64(n))
		var trying sync.WaitGroup
		for range min(mostAtOnce, runtime.GOMAXPROCS(0)) {
			trying.Go(func() {
				for i := left.Add(-1); i >= 0 && ctx.Err() == nil; i = left.Add(-1) {
					results <- result{int(i), try(ctx, int(i))}
				}
			})
		}
		ended := make(chan struct{})
		go func() {
			trying.Wait()
			close(results)
			close(ended)
		}()
		defer func() {
			cancel()
			<-ended
		}()
		for r := range results {
			if !yield(r.i, r.err) {
				return
			}
		}
	}
}
