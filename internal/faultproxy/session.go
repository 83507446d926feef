package faultproxy

import (
	"net"
	"sync"
	"time"
)

// session is one connection of PostgreSQL's protocol: two streams, one per
// direction, each with a goroutine of its own.
type session struct {
	*pair
	proxy    *Postgres
	labels   *labels
	up, down *stream // from the client, from the server
	ended    chan struct{}
	end      sync.Once
}

func newSession(p *Postgres, conn *pair) *session {
	s := &session{pair: conn, proxy: p, labels: newLabels(), ended: make(chan struct{})}
	s.up = newStream(s, FromClient, conn.client, conn.server)
	s.down = newStream(s, FromServer, conn.server, conn.client)
	return s
}

// run passes messages until both directions have ended.
func (s *session) run(first frame) {
	var running sync.WaitGroup
	running.Go(s.down.run)
	s.up.begin(first)
	running.Wait()
}

// stop ends what is being held: there is nobody left to send it to.
func (s *session) stop() { s.end.Do(func() { close(s.ended) }) }

// cut ends the connection on both sides after what was forwarded.
func (s *session) cut() {
	s.drop()
	hangUp(s.client)
	hangUp(s.server)
	s.stop()
}

// cutOne ends the connection on one side; the other hears nothing.
func (s *session) cutOne(half *net.TCPConn) {
	s.drop()
	hangUp(half)
	s.stop()
}

// cutLate ends the connection for the client. What the client sends still
// passes, and so does its end.
func (s *session) cutLate() {
	s.down.dropped.Store(true)
	_ = s.client.CloseWrite() // no deadline: what it has sent is read after Release
}

func (s *session) drop() {
	s.up.dropped.Store(true)
	s.down.dropped.Store(true)
}

// serverEnded tells the client of the server's end. PostgreSQL never ends one
// direction only, so that nothing can be sent to it any more.
func (s *session) serverEnded() {
	hangUp(s.client)
	s.stop()
}

// do does an action's fault at once, and leaves the waiting to the stream.
func (s *session) do(a Action) {
	switch a.kind {
	case cut:
		s.cut()
	case cutReset:
		s.drop()
		s.reset()
	case cutClient:
		s.cutOne(s.client)
	case cutServer:
		s.cutOne(s.server)
	case late:
		s.cutLate()
	case drop:
		for i, stream := range []*stream{s.up, s.down} {
			if a.drop[i] {
				stream.dropped.Store(true)
			}
		}
	case pass, delay, hold:
	default:
		panic("faultproxy: unknown action " + a.String())
	}
}

// hold waits as the action says.
func (s *session) hold(a *Armed) {
	var timeout <-chan time.Time
	released := (<-chan struct{})(a.released)
	switch a.rule.Do.kind {
	case delay:
		timer := time.NewTimer(a.rule.Do.delay)
		defer timer.Stop()
		timeout, released = timer.C, nil
	case hold, late:
	default:
		return
	}
	select {
	case <-timeout:
	case <-released:
	case <-s.ended:
	case <-s.gone:
	}
}
