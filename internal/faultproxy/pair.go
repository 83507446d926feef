package faultproxy

import (
	"io"
	"net"
	"sync"
	"time"
)

// pair is one connection through the proxy: the client's half and the server's.
type pair struct {
	id     int // from 1, in the order of arrival
	client *net.TCPConn
	server *net.TCPConn  // set once, by attach, before any byte is forwarded
	gone   chan struct{} // closed when both halves are: ends every wait
	over   chan struct{} // closed when no goroutine works on it any more

	mu     sync.Mutex
	closed bool
}

// attach gives the pair its other half. It reports false if the pair has been
// closed meanwhile.
func (p *pair) attach(server *net.TCPConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = server.Close() // nothing was sent on it
		return false
	}
	p.server = server
	return true
}

// close closes both halves at once, whatever is on its way.
func (p *pair) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	close(p.gone)
	_ = p.client.Close() // an error says that it is closed
	if p.server != nil {
		_ = p.server.Close()
	}
}

// reset closes both halves with a RST: the peers see a reset connection, and
// what was forwarded before may be lost.
func (p *pair) reset() {
	for _, half := range []*net.TCPConn{p.client, p.server} {
		reset(half)
	}
	p.close()
}

// wait waits for d, and reports whether the pair is still there.
func (p *pair) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.gone:
		return false
	}
}

func reset(half *net.TCPConn) {
	_ = half.SetLinger(0) // both fail only if it is closed already
	_ = half.Close()
}

// hangUp ends our side of half after all that was written to it. Whoever reads
// half then has lingerLimit to see its end.
func hangUp(half *net.TCPConn) {
	_ = half.CloseWrite() // it may be gone already, which is as good
	_ = half.SetDeadline(time.Now().Add(lingerLimit))
}

// discard reads half to its end and throws away what comes.
func discard(half *net.TCPConn) {
	_, _ = io.Copy(io.Discard, half) // however it ends, nobody is told
}
