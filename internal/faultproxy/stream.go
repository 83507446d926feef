package faultproxy

import (
	"errors"
	"net"
	"sync/atomic"
)

// errDropped marks that the direction is dropped from here on.
var errDropped = errors.New("dropped")

// stream is one direction of a session. It is used by one goroutine, except
// dropped, which the other direction may set.
type stream struct {
	framer
	session  *session
	from     Direction
	src, dst *net.TCPConn
	seen     int
	dropped  atomic.Bool
}

func newStream(s *session, from Direction, src, dst *net.TCPConn) *stream {
	return &stream{framer: newFramer(src, dst), session: s, from: from, src: src, dst: dst}
}

// begin is run after a first packet that has been read.
func (s *stream) begin(first frame) {
	if err := s.pass(first); err != nil {
		s.finish(err)
		return
	}
	s.run()
}

// run passes messages until the direction has ended, and tells the receiver, if
// it is to know.
func (s *stream) run() {
	for {
		f, err := s.next()
		if err == nil {
			err = s.pass(f)
		}
		if err != nil {
			s.finish(err)
			return
		}
	}
}

// pass forwards one message, or does what a rule says.
func (s *stream) pass(f frame) error {
	if s.dropped.Load() {
		return errDropped
	}
	s.seen++
	m := Message{Conn: s.session.id, Direction: s.from, N: s.seen, Bytes: f.size()}
	s.session.labels.label(&m, f)
	armed := s.session.proxy.record.see(m)
	if armed == nil {
		return s.write(f)
	}
	return s.act(armed, f)
}

// act does a rule's action at f. All that came before leaves first, and if the
// action is to be done after f, so does f.
func (s *stream) act(armed *Armed, f frame) error {
	after := armed.rule.Do.after
	if after {
		if err := s.write(f); err != nil {
			return err
		}
	}
	if err := s.flush(); err != nil {
		return err
	}
	s.session.do(armed.rule.Do)
	armed.visited()
	if s.dropped.Load() {
		return errDropped
	}
	s.session.hold(armed)
	if armed.cuts.Load() {
		s.session.cut()
	}
	switch {
	case s.dropped.Load():
		return errDropped
	case after:
		return nil
	}
	return s.write(f)
}

// finish ends the direction.
func (s *stream) finish(err error) {
	switch {
	case errors.Is(err, errFraming):
		s.session.proxy.fail(err)
		s.session.close()
	case s.dropped.Load():
		s.sink()
	case errors.Is(err, errUnwritable):
		s.receiverGone()
	case s.from == FromServer:
		s.session.serverEnded()
	default:
		_ = s.dst.CloseWrite() // if it is gone, it knows
	}
}

// sink reads the sender to its end and tells nobody.
func (s *stream) sink() {
	discard(s.src)
	if s.from == FromServer {
		s.session.stop()
	}
	if s.back().dropped.Load() {
		_ = s.src.Close() // nothing passes either way
	}
}

// receiverGone ends a direction whose receiver has closed the connection.
func (s *stream) receiverGone() {
	switch {
	case s.back().dropped.Load(): // the sender must not learn of it
		s.dropped.Store(true)
		s.sink()
	case s.from == FromServer:
		s.session.close()
	default:
		discard(s.src) // the server's last words are still on their way
	}
}

func (s *stream) back() *stream {
	if s.from == FromClient {
		return s.session.down
	}
	return s.session.up
}
