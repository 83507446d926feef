package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// The phases of a repetition.
const (
	fresh   = "fresh keys"
	replays = "50 % replays"
	dup64   = "64 duplicates at once"
	storm   = "storm"
)

var phases = []string{fresh, replays, dup64, storm}

// figures are one measurement of one subject. CPU and WAL are those of the whole
// PostgreSQL, which serves nobody else meanwhile.
type figures struct {
	Subject     string  `json:"subject"`
	Phase       string  `json:"phase"`
	Rep         int     `json:"rep"`
	Requests    int     `json:"requests"`
	Keys        int     `json:"keys"`
	Orders      int     `json:"orders"`
	Refused     int     `json:"refused"`
	Differing   int     `json:"differing"` // answers other than the first to their key
	Rate        float64 `json:"requests_per_second"`
	P50         float64 `json:"p50_ms"`
	P99         float64 `json:"p99_ms"`
	WAL         float64 `json:"wal_bytes_per_request"`
	PostgresCPU float64 `json:"postgres_cpu_us_per_request"`
	ServerCPU   float64 `json:"server_cpu_us_per_request"`
	KeyBytes    float64 `json:"bytes_per_key,omitempty"`
	Before      float64 `json:"others_before_per_second,omitempty"` // of a storm
	During      float64 `json:"others_during_per_second,omitempty"`
}

// cpu is what a request costs on both sides of the database's socket.
func (f figures) cpu() float64 { return f.PostgresCPU + f.ServerCPU }

// meters are the counters that are read before and after.
type meters struct {
	wal              float64
	postgres, server time.Duration
	redisBytes       float64
}

func (b *bench) read(ctx context.Context, s *server) (m meters, err error) {
	if m.wal, err = b.database.WAL(ctx); err != nil {
		return m, err
	}
	if s.redis {
		if m.redisBytes, _, err = b.redis.Memory(ctx); err != nil {
			return m, err
		}
	}
	if m.postgres, err = b.database.CPU(); err != nil {
		return m, err
	}
	m.server, err = s.cpu()
	return m, err
}

// measure runs one phase of one subject on empty tables.
func (b *bench) measure(ctx context.Context, s *server, phase string) (figures, error) {
	f := figures{Subject: s.name, Phase: phase}
	if err := b.empty(ctx); err != nil {
		return f, err
	}
	before, err := b.read(ctx, s)
	if err != nil {
		return f, err
	}
	seen, err := b.load(ctx, s, phase)
	if err != nil {
		return f, fmt.Errorf("%s, %s: %w", s.name, phase, err)
	}
	after, err := b.read(ctx, s)
	if err != nil {
		return f, err
	}
	f.fill(seen, before, after)
	orders, err := b.database.orders(ctx)
	if err != nil {
		return f, err
	}
	f.Orders = int(orders)
	if phase == fresh {
		if f.KeyBytes, err = b.keyBytes(ctx, s, after.redisBytes-before.redisBytes); err != nil {
			return f, err
		}
	}
	return f, f.counts(s.subject)
}

func (b *bench) load(ctx context.Context, s *server, phase string) (stormSeen, error) {
	if phase == storm {
		return stormOf(ctx, s.addr, b.settings.slow)
	}
	connections := b.settings.clients
	if phase == dup64 {
		connections = 64
	}
	clients, err := dialAll(ctx, s.addr, connections)
	if err != nil {
		return stormSeen{}, err
	}
	defer closeAll(clients)
	var seen load
	switch phase {
	case fresh:
		seen, err = drive(ctx, clients, b.settings.length, 0)
	case replays:
		seen, err = drive(ctx, clients, b.settings.length, 0.5)
	case dup64:
		seen, err = duplicates(ctx, clients, b.settings.length)
	}
	return stormSeen{load: seen}, err
}

func (f *figures) fill(seen stormSeen, before, after meters) {
	f.Requests, f.Keys, f.Refused, f.Differing = len(seen.latencies), seen.keys, seen.refused, seen.differing
	f.Before, f.During = seen.before, seen.during
	if seen.took > 0 {
		f.Rate = float64(f.Requests) / seen.took.Seconds()
	}
	slices.Sort(seen.latencies)
	f.P50, f.P99 = percentile(seen.latencies, 0.50), percentile(seen.latencies, 0.99)
	n := float64(f.Requests)
	f.WAL = (after.wal - before.wal) / n
	f.PostgresCPU = float64((after.postgres - before.postgres).Microseconds()) / n
	f.ServerCPU = float64((after.server - before.server).Microseconds()) / n
}

// percentile is in milliseconds, of durations in order.
func percentile(sorted []time.Duration, p float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(float64(len(sorted)-1)*p)].Seconds() * 1000
}

// keyBytes is what a key takes where it is remembered, its index included; 0
// where that is the server's own memory.
func (b *bench) keyBytes(ctx context.Context, s *server, redisBytes float64) (float64, error) {
	switch {
	case s.redis:
		_, keys, err := b.redis.Memory(ctx)
		return redisBytes / keys, err
	case s.keys != "":
		bytes, keys, err := b.database.keySize(ctx, s.keys)
		return bytes / keys, err
	}
	return 0, nil
}

// counts refuses figures that were not come by honestly: a request that failed,
// or a key that did not make one order.
func (f figures) counts(s subject) error {
	want := f.Requests
	if s.once {
		want = f.Keys
	}
	if f.Requests == 0 || f.Refused != 0 || f.Orders != want {
		return fmt.Errorf("%s, %s: %d requests with %d keys, %d refused, made %d orders; want %d",
			f.Subject, f.Phase, f.Requests, f.Keys, f.Refused, f.Orders, want)
	}
	return nil
}
