package idemhttp_test

import (
	"net/http"
	"sync"
	"testing"

	"github.com/idem-go/idem"
)

// gate holds handlers until it is opened, so that tests order what happens
// without guessing at times.
type gate struct {
	entered chan struct{}
	open    chan struct{}
	once    sync.Once
}

// newGate returns a gate that opens at the latest when the test ends. Make it
// after the server, so that it opens before the server waits for its handlers.
func newGate(t testing.TB) *gate {
	g := &gate{entered: make(chan struct{}, 1000), open: make(chan struct{})}
	t.Cleanup(g.release)
	return g
}

// pass is called by the handler.
func (g *gate) pass() {
	g.entered <- struct{}{}
	<-g.open
}

func (g *gate) release() { g.once.Do(func() { close(g.open) }) }

// inside waits until a handler is at the gate.
func (g *gate) inside(t testing.TB) {
	t.Helper()
	eventually(t, "a handler at the gate", func() bool { return len(g.entered) > 0 })
	<-g.entered
}

// begin sends s and does not wait for the answer.
func (r *rig) begin(s sending) <-chan reply {
	got := make(chan reply, 1)
	go func() { got <- r.send(s) }()
	return got
}

// beginMany sends s n times at once and does not wait for the answers.
func (r *rig) beginMany(n int, s sending) []<-chan reply {
	all := make([]<-chan reply, n)
	for i := range all {
		all[i] = r.begin(s)
	}
	return all
}

// waiters waits until n requests wait for the one that works on guest's key.
func (r *rig) waiters(key string, n int) {
	r.t.Helper()
	eventually(r.t, "the duplicates wait", func() bool { return r.guard.Waiters("guest", key) == n })
}

// wantFree fails unless nothing is remembered of any key.
func (r *rig) wantFree() {
	r.t.Helper()
	r.wantRows("select count(*) from idem.idempotency_keys", 0)
}

// wantState fails unless key is remembered in state.
func (r *rig) wantState(key, state string) {
	r.t.Helper()
	r.wantRows("select count(*) from idem.idempotency_keys where key = $1 and state = $2", 1, key, state)
}

// insertOrder writes one order in the handler's transaction.
func insertOrder(r *http.Request) error {
	_, err := idem.Tx(r.Context()).Exec(r.Context(), "insert into orders (customer, amount) values (1, 1)")
	return err
}

// fail answers what a handler answers that maps every database error to 409.
func fail409(w http.ResponseWriter, err error) bool {
	if err != nil {
		http.Error(w, "conflict: "+err.Error(), http.StatusConflict)
	}
	return err != nil
}
