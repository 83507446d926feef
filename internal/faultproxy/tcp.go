package faultproxy

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
)

// TCP is a proxy that knows bytes only. Its methods may be called concurrently.
// Close it.
type TCP struct {
	gate
	seed   uint64
	counts counters

	planning sync.Mutex
	plan     Plan
}

// Counts is what a TCP proxy has done so far.
type Counts struct {
	Connections int64 // let in; those refused by plan among them
	Refused     int64 // by plan, by Refuse, or beyond the limit of connections
	Cuts        int64
	HalfCloses  int64
	Delays      int64 // pieces that waited
	BytesUp     int64 // passed from clients
	BytesDown   int64 // passed from the server
}

type counters struct {
	refused, cuts, halfCloses, delays, up, down atomic.Int64
}

// NewTCP starts a proxy on a port of its own in front of upstream, a host:port on
// the loopback interface. A nil plan means no faults; seed is what the plan's
// chance comes from.
func NewTCP(upstream string, seed uint64, plan Plan) (*TCP, error) {
	if _, _, err := net.SplitHostPort(upstream); err != nil {
		return nil, fmt.Errorf("faultproxy: the upstream must be host:port: %w", err)
	}
	p := &TCP{seed: seed, plan: plan}
	if err := p.start(upstream, p.serve); err != nil {
		return nil, err
	}
	return p, nil
}

// SetPlan changes the plan for the connections to come; nil means no faults.
func (p *TCP) SetPlan(plan Plan) {
	p.planning.Lock()
	defer p.planning.Unlock()
	p.plan = plan
}

// Retarget changes the upstream for the connections to come: a server that was
// restarted on another port.
func (p *TCP) Retarget(upstream string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.upstream = upstream
}

// Counts returns what has been done so far.
func (p *TCP) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Counts{
		Connections: int64(p.accepted),
		Refused:     int64(p.refused) + p.counts.refused.Load(),
		Cuts:        p.counts.cuts.Load(),
		HalfCloses:  p.counts.halfCloses.Load(),
		Delays:      p.counts.delays.Load(),
		BytesUp:     p.counts.up.Load(),
		BytesDown:   p.counts.down.Load(),
	}
}

func (p *TCP) fault(conn int) Fault {
	p.planning.Lock()
	defer p.planning.Unlock()
	if p.plan == nil {
		return Fault{}
	}
	return p.plan(conn, rand.New(rand.NewPCG(p.seed, uint64(conn))))
}

// serve runs one connection to its end.
func (p *TCP) serve(conn *pair) {
	fault := p.fault(conn.id)
	if fault.Kind == Refuse {
		p.counts.refused.Add(1)
		reset(conn.client)
		return
	}
	if !p.connect(conn) {
		return
	}
	newFlow(conn, fault, &p.counts).run()
}
