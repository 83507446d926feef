package idemhttp_test

import (
	"context"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
)

// What follows the commit keeps nobody waiting but the request that asked for it.
func TestAfterCommit_waitersAndRepeatsGetTheReplayAtOnce(t *testing.T) {
	for name, fn := range map[string]func(g *gate){
		"that blocks": (*gate).pass,
		"that blocks and exits its goroutine": func(g *gate) {
			g.pass()
			runtime.Goexit()
		},
		"that blocks and panics": func(g *gate) {
			g.pass()
			panic("boom")
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			var handler, after *gate
			r.handle("/x", idemhttp.Route{Wait: time.Minute}, func(w http.ResponseWriter, req *http.Request) {
				if err := insertOrder(req); err != nil {
					panic(err)
				}
				idem.AfterCommit(req.Context(), func(context.Context) { fn(after) })
				handler.pass()
				w.WriteHeader(http.StatusCreated)
			})
			r.serve()
			handler, after = newGate(t), newGate(t)
			first := r.begin(post("/x", "k", "{}"))
			handler.inside(t)
			others := r.beginMany(3, post("/x", "k", "{}"))
			r.waiters("k", 3)
			handler.release()
			after.inside(t)
			for _, other := range append(others, r.begin(post("/x", "k", "{}"))) {
				wantReplayAtOnce(t, other)
			}
			after.release()
			<-first // whatever became of it, what it committed is remembered
			if got := r.send(post("/x", "k", "{}")); got.status != 201 || !got.replayed() {
				t.Errorf("a later repeat got %d %q, replayed %v", got.status, got.problem(), got.replayed())
			}
			r.wantRows("select count(*) from orders", 1)
			eventually(t, "the buffers are given back", func() bool { return r.guard.Buffered() == 0 })
		})
	}
}

func wantReplayAtOnce(t *testing.T, one <-chan reply) {
	t.Helper()
	select {
	case got := <-one:
		if got.err != nil || got.status != 201 || !got.replayed() {
			t.Errorf("got %d %q %v, replayed %v, want the replay", got.status, got.problem(), got.err, got.replayed())
		}
	case <-time.After(5 * time.Second):
		t.Error("no answer within 5 s while AfterCommit runs")
	}
}
