package idemhttp

import (
	"net/http"
	"net/http/httptest"

	"github.com/idem-go/idem"
)

// Waiters is how many requests wait for the one that works on a key.
func (g *Guard) Waiters(scope, key string) int {
	g.flights.mu.Lock()
	defer g.flights.mu.Unlock()
	if f, flying := g.flights.byKey[flightKey{scope, key}]; flying {
		return f.waiters
	}
	return 0
}

// Buffered is how many bytes of bodies and answers the guard holds.
func (g *Guard) Buffered() int64 { return g.budget.used.Load() }

// Flying reports whether a request of this process works on a key, or waits for
// the process that does.
func (g *Guard) Flying(scope, key string) bool {
	g.flights.mu.Lock()
	defer g.flights.mu.Unlock()
	_, flying := g.flights.byKey[flightKey{scope, key}]
	return flying
}

// Telling returns what raises the events of one request that is replayed.
func Telling(g *Guard) func() {
	x := newExchange(&guarded{Guard: g, route: Route{Name: "POST /x"}}, nil, httptest.NewRequest(http.MethodPost, "/x", nil))
	e := ending{outcome: idem.OutcomeReplayed}
	return func() {
		x.observe(idem.Event{Kind: idem.EventStart})
		x.done(e, http.StatusCreated)
	}
}
