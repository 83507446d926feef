package idemhttp_test

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem/idemhttp"
)

func TestP13_repeatsRunNotOneLineOfTheHandler(t *testing.T) {
	r := newRig(t)
	var g *gate
	var middleware, handler atomic.Int64
	hold := atomic.Bool{}
	inner := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		handler.Add(1)
		if hold.Load() {
			g.pass()
		}
		if err := insertOrder(req); err != nil {
			panic(err)
		}
		w.WriteHeader(http.StatusCreated)
	})
	between := func(w http.ResponseWriter, req *http.Request) {
		middleware.Add(1)
		w.Header().Set("Etag", "from the middleware between")
		inner.ServeHTTP(w, req)
	}
	r.handle("/x", idemhttp.Route{}, between)
	r.serve()
	g = newGate(t)
	ran := func(want int64) {
		t.Helper()
		if middleware.Load() != want || handler.Load() != want {
			t.Fatalf("the middleware between ran %d times and the handler %d, want %d", middleware.Load(), handler.Load(), want)
		}
	}

	r.want(r.send(post("/x", "k", "1")), 201, "")
	ran(1)
	if got := r.send(post("/x", "k", "1")); !got.replayed() || got.header.Get("Etag") == "" {
		t.Errorf("the repeat got %d %v", got.status, got.header)
	}
	ran(1)
	r.want(r.send(post("/x", "k", "2")), 409, "key-mismatch")
	ran(1)

	hold.Store(true)
	first := r.begin(post("/x", "slow", "1"))
	g.inside(t)
	waiting := r.beginMany(3, post("/x", "slow", "1"))
	r.waiters("slow", 3)
	r.want(r.send(post("/x", "slow", "2")), 409, "key-mismatch")
	ran(2)
	g.release()
	r.want(<-first, 201, "")
	for _, w := range waiting {
		if got := <-w; got.status != 201 || !got.replayed() {
			t.Errorf("a waiter got %d, replayed %v", got.status, got.replayed())
		}
	}
	ran(2)
	r.wantRows("select count(*) from orders", 2)
}
