package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
)

// gate accepts connections on a loopback port and owns them and their
// goroutines until it is closed.
type gate struct {
	listener *net.TCPListener
	serve    func(*pair)
	context  context.Context // ended by close
	cancel   context.CancelFunc
	running  sync.WaitGroup

	mu       sync.Mutex
	upstream string // host:port
	pairs    map[*pair]struct{}
	accepted int // connections that were let in
	refused  int // connections that were not
	refusing bool
	closed   bool
	err      error // what the proxy itself got wrong
}

// start begins to accept connections. Each is given to serve, which returns when
// the connection is over.
func (g *gate) start(upstream string, serve func(*pair)) error {
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return fmt.Errorf("faultproxy: listen: %w", err)
	}
	g.listener, g.upstream, g.serve = listener, upstream, serve
	g.pairs = map[*pair]struct{}{}
	g.context, g.cancel = context.WithCancel(context.Background())
	g.running.Go(g.accept)
	return nil
}

func (g *gate) accept() {
	for {
		conn, err := g.listener.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Clients shall be refused, not left waiting.
			g.fail(errors.Join(err, g.listener.Close()))
			return
		}
		g.admit(conn)
	}
}

// admit starts a connection, or resets it if none is wanted.
func (g *gate) admit(client *net.TCPConn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.refusing || len(g.pairs) == maxPairs {
		g.refused++
		reset(client)
		return
	}
	g.accepted++
	p := &pair{id: g.accepted, client: client, gone: make(chan struct{}), over: make(chan struct{})}
	g.pairs[p] = struct{}{}
	g.running.Go(func() {
		g.serve(p)
		p.close()
		g.mu.Lock()
		delete(g.pairs, p)
		g.mu.Unlock()
		close(p.over)
	})
}

// connect dials the upstream for p. If it is away, so are we: the client is
// reset.
func (g *gate) connect(p *pair) bool {
	g.mu.Lock()
	upstream := g.upstream
	g.mu.Unlock()
	dialer := net.Dialer{Timeout: dialLimit, Control: loopbackOnly}
	conn, err := dialer.DialContext(g.context, "tcp", upstream)
	if err != nil {
		reset(p.client)
		return false
	}
	return p.attach(conn.(*net.TCPConn))
}

// loopbackOnly refuses every other address after names have been resolved:
// faults are for servers of our own.
func loopbackOnly(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("faultproxy: %s is not a loopback address", address)
	}
	return nil
}

// Addr returns the proxy's address as host:port.
func (g *gate) Addr() string { return g.listener.Addr().String() }

// Open is how many connections there are now, those among them of which only one
// side is left.
func (g *gate) Open() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.pairs)
}

// Refuse makes the upstream look away: while on, every new connection is reset
// before a byte of it is read. Those that exist stay.
func (g *gate) Refuse(on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refusing = on
}

// CutAll closes every connection, in whatever state it is, and returns when
// nothing more passes on them. New ones are let in.
func (g *gate) CutAll() {
	g.mu.Lock()
	pairs := make([]*pair, 0, len(g.pairs))
	for p := range g.pairs {
		pairs = append(pairs, p)
	}
	g.mu.Unlock()
	for _, p := range pairs {
		p.close()
	}
	for _, p := range pairs {
		<-p.over
	}
}

// Close closes the listener and every connection and returns when no goroutine
// is left. It reports what the proxy itself could not do, such as to understand
// a message; faults and the ends of connections are no errors. Later calls do
// the same.
func (g *gate) Close() error {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.cancel()
	_ = g.listener.Close() // its only failure is that it is closed
	g.CutAll()
	g.running.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.err
}

// fail keeps the first error.
func (g *gate) fail(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		g.err = fmt.Errorf("faultproxy: %w", err)
	}
}
