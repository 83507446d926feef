package faultproxy

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// flow is one connection of a TCP proxy: two directions, each with a goroutine of
// its own.
type flow struct {
	*pair
	fault  Fault
	counts *counters
	broken atomic.Bool // cut by the fault
}

func newFlow(conn *pair, fault Fault, counts *counters) *flow {
	return &flow{pair: conn, fault: fault, counts: counts}
}

func (f *flow) run() {
	var running sync.WaitGroup
	running.Go(func() { f.down(f.pass(f.server, f.client, f.room(CutDown), &f.counts.down)) })
	f.up(f.pass(f.client, f.server, max(f.room(CutUp), f.room(HalfClose)), &f.counts.up))
	running.Wait()
}

// end is why a direction ended.
type end int

const (
	senderEnded end = iota
	receiverEnded
	faultMet // as many bytes have passed as the fault lets
	torn     // the other direction met it, or the connection is closed
)

// unlimited is the room of a direction without a fault.
const unlimited = -1

// room is how many bytes may pass if the fault is of this kind.
func (f *flow) room(k Kind) int64 {
	if f.fault.Kind != k {
		return unlimited
	}
	return f.fault.After
}

// pass forwards one direction until it ends. A Read of TCP returns bytes or an
// error, never both.
func (f *flow) pass(src, dst *net.TCPConn, room int64, passed *atomic.Int64) end {
	buffer := make([]byte, bufferSize)
	for {
		n, err := src.Read(buffer)
		switch {
		case err != nil && f.broken.Load():
			return torn
		case err != nil:
			return senderEnded
		case !f.slow():
			return torn
		}
		if room != unlimited {
			n = int(min(int64(n), room))
			room -= int64(n)
		}
		_, err = dst.Write(buffer[:n])
		switch {
		case f.broken.Load():
			return torn
		case err != nil:
			return receiverEnded
		}
		passed.Add(int64(n))
		if room == 0 {
			return faultMet
		}
	}
}

// slow waits as the fault says. It reports whether the connection is still there.
func (f *flow) slow() bool {
	if f.fault.Delay > 0 {
		f.counts.delays.Add(1)
		return f.wait(f.fault.Delay) && !f.broken.Load()
	}
	return !f.broken.Load()
}

// up ends the client's direction.
func (f *flow) up(why end) {
	switch {
	case why == faultMet && f.fault.Kind == HalfClose:
		f.counts.halfCloses.Add(1)
		_ = f.server.CloseWrite() // if it is gone, it knows
		discard(f.client)
	case why == faultMet:
		f.cut()
		discard(f.client)
	case why == senderEnded:
		_ = f.server.CloseWrite()
	case why == receiverEnded:
		// What the server said before it went may still be on its way.
		_ = f.client.SetReadDeadline(time.Now().Add(lingerLimit))
		discard(f.client)
	case why == torn:
		discard(f.client)
	}
}

// down ends the server's direction.
func (f *flow) down(why end) {
	switch why {
	case faultMet:
		f.cut()
		discard(f.server)
	case senderEnded:
		_ = f.client.CloseWrite()
	case receiverEnded:
		f.close()
	case torn:
		discard(f.server)
	}
}

// cut ends the connection on both sides.
func (f *flow) cut() {
	f.broken.Store(true)
	f.counts.cuts.Add(1)
	if f.fault.Reset {
		f.reset()
		return
	}
	hangUp(f.client)
	hangUp(f.server)
}
