package idemtest

import (
	"github.com/idem-go/idem/internal/faultproxy"
	"github.com/idem-go/idem/internal/pgsql/keys"
)

// The heartbeat of leases comes when its time has come, on a connection of its own,
// so that it is in one run of a request and not in another. It is no point, and its
// messages do not count among those that are alike.

// withoutBeats leaves out the messages of heartbeats, and counts the others anew.
func withoutBeats(steps []step) []step {
	beating := map[int]bool{}
	for _, s := range steps {
		if s.SQL == keys.Renew {
			beating[s.Conn] = true
		}
	}
	var kept []step
	nth := map[faultproxy.Message]int{}
	starts := starts{}
	for _, s := range steps {
		if beating[s.Conn] || starts.ended(s.Message) {
			continue
		}
		kind := faultproxy.Message{Direction: s.Direction, Type: s.Type, SQL: s.SQL, Tag: s.Tag}
		nth[kind]++
		s.Nth = nth[kind]
		kept = append(kept, s)
	}
	return kept
}

// ignoringBeats is when, which is not shown what withoutBeats leaves out. Of the start
// of a heartbeat's connection, which nothing tells from others yet, it sees what no
// other connection says once it has started.
func ignoringBeats(when func(faultproxy.Message) bool) func(faultproxy.Message) bool {
	beating, starts := map[int]bool{}, starts{}
	return func(m faultproxy.Message) bool {
		beating[m.Conn] = beating[m.Conn] || m.SQL == keys.Renew
		return !starts.ended(m) && !beating[m.Conn] && when(m)
	}
}

// starts are the connections that are being started.
type starts map[int]bool

// ended reports whether m is the end of a connection's start: a ReadyForQuery that
// looks like any other.
func (s starts) ended(m faultproxy.Message) bool {
	switch {
	case m.Type == "StartupMessage":
		s[m.Conn] = true
	case m.Type == "ReadyForQuery" && s[m.Conn]:
		delete(s, m.Conn)
		return true
	}
	return false
}
