package idemhttp

import (
	"bytes"
	"sync"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/claim"
)

// flights are the keys that this process works on. One request leads a key's
// flight; the others wait for it outside the connection pool.
type flights struct {
	mu         sync.Mutex
	byKey      map[flightKey]*flight
	maxWaiters int
}

type flightKey struct{ scope, key string }

// flight is one key's work in progress. end is set before done is closed.
type flight struct {
	key         flightKey
	fingerprint idem.Fingerprint
	waiters     int           // guarded by flights.mu
	by          claim.Request // who leads it, set before started is closed
	started     chan struct{} // closed when the handler starts: the key is this request's
	startOnce   sync.Once
	away        chan struct{} // closed when another process was found to work on the key
	awayOnce    sync.Once
	done        chan struct{}
	landed      bool // guarded by flights.mu
	end         ending
}

// role is a request's part in a flight.
type role int

const (
	leading   role = iota + 1 // the first: claims the key
	waiting                   // the same request again
	differing                 // another request under the same key
	crowded                   // one waiter too many
)

func newFlights(maxWaiters int) *flights {
	return &flights{byKey: make(map[flightKey]*flight), maxWaiters: maxWaiters}
}

// join returns the key's flight and the caller's part in it. A leader must call
// land; a waiting or differing request must call leave.
func (fs *flights) join(scope, key string, fingerprint idem.Fingerprint) (*flight, role) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	k := flightKey{scope, key}
	f, flying := fs.byKey[k]
	switch {
	case !flying:
		f = &flight{key: k, fingerprint: fingerprint, started: make(chan struct{}), away: make(chan struct{}), done: make(chan struct{})}
		fs.byKey[k] = f
		return f, leading
	}
	role := differing
	if f.fingerprint.Version == fingerprint.Version && bytes.Equal(f.fingerprint.Sum, fingerprint.Sum) {
		role = waiting
	}
	if f.waiters >= fs.maxWaiters && (role == waiting || !f.hasStarted()) {
		return nil, crowded
	}
	f.waiters++
	return f, role
}

// leave ends the part of one who does not lead, and with it the use of what the
// flight has ended with.
func (fs *flights) leave(f *flight) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f.waiters--
	if f.landed {
		f.end.hold.release()
	}
}

func (f *flight) hasStarted() bool {
	select {
	case <-f.started:
		return true
	default:
		return false
	}
}

// start says that the flight's request has the key.
func (f *flight) start() { f.startOnce.Do(func() { close(f.started) }) }

// isAway says that another process works on the flight's key.
func (f *flight) isAway() { f.awayOnce.Do(func() { close(f.away) }) }

// land ends the flight: those who wait get end, whoever comes later asks the
// database.
func (fs *flights) land(f *flight, end ending) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	delete(fs.byKey, f.key)
	f.end, f.landed = end, true
	end.hold.share(f.waiters)
	close(f.done)
}
