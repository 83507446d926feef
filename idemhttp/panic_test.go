package idemhttp_test

import (
	"io"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
)

// recoverer is the program's own, outside the guard.
type recoverer struct {
	mu   sync.Mutex
	seen []any
}

func (c *recoverer) saw() []any {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen
}

func (c *recoverer) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if v := recover(); v != nil {
				c.mu.Lock()
				c.seen = append(c.seen, v)
				c.mu.Unlock()
				if v == http.ErrAbortHandler {
					panic(v)
				}
				http.Error(w, "recovered", http.StatusTeapot)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// panicking serves a handler that inserts, begins an answer, and leaves by bad
// until healthy.
func panicking(r *rig, healthy *atomic.Bool, before func(), bad func()) {
	r.handle("/x", idemhttp.Route{}, func(w http.ResponseWriter, req *http.Request) {
		if err := insertOrder(req); err != nil {
			panic(err)
		}
		w.Header().Set("X-Begun", "yes")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "half an answer")
		before()
		if !healthy.Load() {
			bad()
		}
	})
}

func TestP6_panicFreesTheKeyAndReachesTheProgramsRecoverer(t *testing.T) {
	r := newRig(t)
	var outside recoverer
	var healthy atomic.Bool
	panicking(r, &healthy, func() {}, func() { panic("boom") })
	r.wrap = outside.wrap
	r.serve()
	for range 2 {
		got := r.send(post("/x", "k", "{}"))
		if got.status != http.StatusTeapot || got.body != "recovered\n" || got.header.Get("X-Begun") != "" {
			t.Errorf("the client got %d %v %q, want the recoverer's answer", got.status, got.header, got.body)
		}
		r.wantFree()
		r.wantRows("select count(*) from orders", 0)
	}
	if saw := outside.saw(); len(saw) != 2 || saw[0] != "boom" {
		t.Errorf("the recoverer saw %v, want boom twice", saw)
	}
	r.mu.Lock()
	reported := 0
	for _, e := range r.events {
		if e.Kind == idem.EventPanic {
			reported++
		}
	}
	r.mu.Unlock()
	if reported != 2 {
		t.Errorf("%d panics were reported, want 2", reported)
	}
	healthy.Store(true)
	r.want(r.send(post("/x", "k", "{}")), 201, "")
	r.wantRows("select count(*) from orders", 1)
}

func TestP6_abortAndGoexitAbortTheConnection(t *testing.T) {
	for name, bad := range map[string]func(){
		"ErrAbortHandler": func() { panic(http.ErrAbortHandler) },
		"Goexit":          runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			var outside recoverer
			var healthy atomic.Bool
			panicking(r, &healthy, func() {}, bad)
			r.wrap = outside.wrap
			r.serve()
			if got := r.send(post("/x", "k", "{}")); got.err == nil {
				t.Errorf("the client got %d %q, want a connection that is cut", got.status, got.body)
			}
			if saw := outside.saw(); len(saw) != 1 || saw[0] != http.ErrAbortHandler {
				t.Errorf("the recoverer saw %v, want http.ErrAbortHandler", saw)
			}
			r.wantFree()
			healthy.Store(true)
			r.want(r.send(post("/x", "k", "{}")), 201, "")
			r.wantRows("select count(*) from orders", 1)
		})
	}
}

func TestP6_waitersOfAPanicAreTold(t *testing.T) {
	for name, bad := range map[string]func(){
		"panic":           func() { panic("boom") },
		"nil pointer":     func() { var p *rig; p.t = nil },
		"ErrAbortHandler": func() { panic(http.ErrAbortHandler) },
		"Goexit":          runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			var healthy atomic.Bool
			var g *gate
			panicking(r, &healthy, func() { g.pass() }, bad)
			r.serve()
			g = newGate(t)
			first := r.begin(post("/x", "k", "{}"))
			g.inside(t)
			others := r.beginMany(5, post("/x", "k", "{}"))
			r.waiters("k", 5)
			g.release()
			if got := <-first; got.err == nil {
				t.Errorf("the first got %d %q, want a connection that is cut", got.status, got.body)
			}
			for _, other := range others {
				r.want(<-other, 500, "not-applied")
			}
			r.wantFree()
			r.wantRows("select count(*) from orders", 0)
			healthy.Store(true)
			r.want(r.send(post("/x", "k", "{}")), 201, "")
		})
	}
}
