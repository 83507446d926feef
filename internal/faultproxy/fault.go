package faultproxy

import (
	"math/rand/v2"
	"time"
)

// Fault is what happens to one connection of a TCP proxy. Its zero value is no
// fault.
type Fault struct {
	Kind Kind
	// After is how many bytes pass in the fault's direction before it happens:
	// with zero, it happens at the first byte.
	After int64
	// Reset makes a cut a RST: what was forwarded before may be lost, too.
	Reset bool
	// Delay is what everything waits that is read at once, in both directions;
	// the end of the connection does not wait.
	Delay time.Duration
}

// Kind is a kind of fault.
type Kind int

// The kinds of faults.
const (
	None    Kind = iota
	Refuse       // the connection is reset before a byte of it is read
	CutUp        // both sides are cut after so many bytes from the client
	CutDown      // both sides are cut after so many bytes from the server
	// HalfClose ends the client's direction after so many bytes: the server sees
	// the client's end, and what it answers still arrives.
	HalfClose
)

// Plan decides on a connection's fault. Connections are numbered from 1, in the
// order of arrival; random is seeded by the proxy's seed and that number, so that
// the same connection of another run meets the same fault. It is called for one
// connection at a time.
type Plan func(conn int, random *rand.Rand) Fault

// Script is a plan that gives the faults to the connections in their order, and
// none to those after.
func Script(faults ...Fault) Plan {
	return func(conn int, _ *rand.Rand) Fault {
		if conn > len(faults) {
			return Fault{}
		}
		return faults[conn-1]
	}
}

// Weather is a plan by chance: faults at these shares of the connections, each
// between 0 and 1 and together not above 1. A connection that meets none stays
// good for as long as it is kept alive: for clients that keep theirs, let the
// shares be 1 together.
type Weather struct {
	Refuse    float64
	CutUp     float64
	CutDown   float64
	HalfClose float64
	// Within is the bytes before which a cut comes, evenly spread. Zero means
	// 2,000, a request or two.
	Within int64
	// Slow is the share of the connections, whatever else they meet, on which
	// what passes is delayed by up to Delay.
	Slow  float64
	Delay time.Duration
}

// Plan returns w as a plan.
func (w Weather) Plan() Plan {
	within := w.Within
	if within <= 0 {
		within = 2_000
	}
	return func(_ int, random *rand.Rand) Fault {
		f := Fault{Kind: w.kind(random.Float64())}
		f.After = random.Int64N(within)
		f.Reset = random.IntN(2) == 0
		if random.Float64() < w.Slow && w.Delay > 0 {
			f.Delay = 1 + time.Duration(random.Int64N(int64(w.Delay)))
		}
		return f
	}
}

func (w Weather) kind(chance float64) Kind {
	for _, share := range []struct {
		of   float64
		kind Kind
	}{{w.Refuse, Refuse}, {w.CutUp, CutUp}, {w.CutDown, CutDown}, {w.HalfClose, HalfClose}} {
		if chance < share.of {
			return share.kind
		}
		chance -= share.of
	}
	return None
}
