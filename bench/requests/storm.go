package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

const (
	// stormDuplicates all send one slow key at once.
	stormDuplicates = 64
	// stormOthers send other keys all the time.
	stormOthers = 8
	// stormsPerRep is how often the slow key comes in one repetition.
	stormsPerRep = 2
)

// stormSeen is what came of storms and of the other keys beside them.
type stormSeen struct {
	load                   // of the duplicates and the others together
	before, during float64 // requests per second of the others
}

// window counts what the others do in a time.
type window struct {
	requests int64
	took     time.Duration
}

func (w window) rate() float64 { return float64(w.requests) / w.took.Seconds() }

// stormOf lets the others run, counts them for as long as the slow key takes, then
// counts them while its duplicates wait, and all that a few times over.
func stormOf(ctx context.Context, addr string, slow time.Duration) (stormSeen, error) {
	clients, err := dialAll(ctx, addr, stormDuplicates+stormOthers)
	if err != nil {
		return stormSeen{}, err
	}
	defer closeAll(clients)
	var answered atomic.Int64
	running, stop := context.WithCancel(ctx)
	defer stop()
	type result struct {
		load
		err error
	}
	others := make(chan result, 1)
	go func() {
		seen, err := together(clients[stormDuplicates:], func(c *client) (load, error) { return sendOthers(running, c, &answered) })
		others <- result{seen, err}
	}()
	seen, err := storms(ctx, clients[:stormDuplicates], slow, &answered)
	stop()
	beside := <-others
	seen.add(beside.load)
	return seen, errors.Join(err, beside.err)
}

// sendOthers sends fresh keys until ctx ends.
func sendOthers(ctx context.Context, c *client, answered *atomic.Int64) (seen load, err error) {
	for ctx.Err() == nil {
		fresh := newSent()
		if err := seen.send(c, &fresh); err != nil {
			return seen, err
		}
		answered.Add(1)
	}
	return seen, nil
}

func storms(ctx context.Context, clients []*client, slow time.Duration, answered *atomic.Int64) (seen stormSeen, err error) {
	var before, during window
	for range stormsPerRep {
		if err := pause(ctx, slow/5); err != nil { // the wake of the last one
			return seen, err
		}
		err = before.count(answered, func() error { return pause(ctx, slow) })
		if err != nil {
			return seen, err
		}
		err = during.count(answered, func() error {
			body := fmt.Sprintf(`{"customer_id":7,"amount":10,"sleep_ms":%d}`, slow.Milliseconds())
			round, err := oneRound(clients, sent{key: uuid.NewString(), body: body})
			seen.add(round)
			return err
		})
		if err != nil {
			return seen, err
		}
	}
	seen.before, seen.during = before.rate(), during.rate()
	return seen, nil
}

func (w *window) count(answered *atomic.Int64, while func() error) error {
	first, began := answered.Load(), time.Now()
	err := while()
	w.took += time.Since(began)
	w.requests += answered.Load() - first
	return err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
