package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// load is what the clients have seen.
type load struct {
	took      time.Duration
	latencies []time.Duration
	keys      int // distinct ones
	refused   int // answers other than 201
	differing int // repeats with another body than their first
}

func (l *load) add(more load) {
	l.latencies = append(l.latencies, more.latencies...)
	l.keys += more.keys
	l.refused += more.refused
	l.differing += more.differing
}

// sent is a request that can be repeated.
type sent struct{ key, body, answered string }

func newSent() sent {
	return sent{key: uuid.NewString(), body: `{"customer_id":` + strconv.Itoa(rand.IntN(1_000_000)) + `,"amount":1500.25}`}
}

// send sends r and counts what comes of it. A repeat is one that has been answered.
func (l *load) send(c *client, r *sent) error {
	began := time.Now()
	status, answered, err := c.order(r.key, r.body)
	if err != nil {
		return err
	}
	l.latencies = append(l.latencies, time.Since(began))
	switch {
	case status != 201:
		l.refused++
	case r.answered == "":
		l.keys++
		r.answered = string(answered)
	case r.answered != string(answered):
		l.differing++
	}
	return nil
}

// drive has every client send one request after another for a while. Each is,
// with the probability repeats, one of the client's own earlier ones.
func drive(ctx context.Context, clients []*client, length time.Duration, repeats float64) (load, error) {
	var over atomic.Bool
	timer := time.AfterFunc(length, func() { over.Store(true) })
	defer timer.Stop()
	return together(clients, func(c *client) (seen load, err error) {
		var before []sent
		for !over.Load() && ctx.Err() == nil {
			if len(before) > 0 && rand.Float64() < repeats {
				err = seen.send(c, &before[rand.IntN(len(before))])
			} else {
				fresh := newSent()
				err = seen.send(c, &fresh)
				if repeats > 0 && fresh.answered != "" {
					before = append(before, fresh)
				}
			}
			if err != nil {
				return seen, err
			}
		}
		return seen, ctx.Err()
	})
}

// duplicates has all clients send the same request at once, round after round.
func duplicates(ctx context.Context, clients []*client, length time.Duration) (load, error) {
	var all load
	for began := time.Now(); all.took < length && ctx.Err() == nil; all.took = time.Since(began) {
		round, err := oneRound(clients, newSent())
		if err != nil {
			return all, err
		}
		all.add(round)
	}
	return all, ctx.Err()
}

// oneRound sends r once from every client. Answers that differ are counted
// against the first that came.
func oneRound(clients []*client, r sent) (load, error) {
	var mu sync.Mutex
	round, err := together(clients, func(c *client) (seen load, err error) {
		mine := r
		if err := seen.send(c, &mine); err != nil {
			return seen, err
		}
		mu.Lock()
		defer mu.Unlock()
		if r.answered == "" {
			r.answered = mine.answered
		} else if mine.answered != r.answered {
			seen.differing++
		}
		return seen, nil
	})
	round.keys = 1
	return round, err
}

// together runs f for all clients at once and adds up what they see.
func together(clients []*client, f func(*client) (load, error)) (load, error) {
	var all load
	var errs []error
	var mu sync.Mutex
	var running sync.WaitGroup
	began := time.Now()
	for _, c := range clients {
		running.Go(func() {
			seen, err := f(c)
			mu.Lock()
			defer mu.Unlock()
			all.add(seen)
			if err != nil {
				errs = append(errs, err)
			}
		})
	}
	running.Wait()
	all.took = time.Since(began)
	return all, errors.Join(errs...)
}
