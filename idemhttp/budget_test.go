package idemhttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem/idemhttp"
)

// slowReaders makes the answers with a mark wait for gate, as they do for
// clients that do not read.
func slowReaders(gate func() *gate) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			next.ServeHTTP(&slowReader{w, gate}, req)
		})
	}
}

type slowReader struct {
	http.ResponseWriter
	gate func() *gate
}

func (w *slowReader) Write(p []byte) (int, error) {
	if w.Header().Get("Idempotent-Replayed") != "" {
		w.gate().pass()
	}
	return w.ResponseWriter.Write(p)
}

// largeAnswers serves answers of 600,000 bytes, of which one fits the buffers.
func largeAnswers(t *testing.T, hold *gate) (*rig, func() *gate) {
	r := newRig(t, func(c *idemhttp.Config) { c.MaxBuffers = 1 << 20 })
	var readers *gate
	r.handle("/x", idemhttp.Route{MaxBody: 1000, MaxHeld: 700_000, MaxStored: 700_000, Wait: time.Minute}, func(w http.ResponseWriter, _ *http.Request) {
		if hold != nil {
			hold.pass()
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, strings.Repeat("x", 600_000))
	})
	get := func() *gate { return readers }
	r.wrap = slowReaders(get)
	r.serve()
	readers = newGate(t)
	return r, get
}

func TestBudget_replayIsCountedUntilItIsSent(t *testing.T) {
	r, readers := largeAnswers(t, nil)
	r.want(r.send(post("/x", "k", "{}")), 201, "")
	eventually(t, "the first answer is given back", func() bool { return r.guard.Buffered() == 0 })
	slow := r.begin(post("/x", "k", "{}"))
	readers().inside(t)
	if n := r.guard.Buffered(); n < 590_000 {
		t.Errorf("%d bytes are counted while a replay of 600,000 is sent", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	r.want(r.sendContext(ctx, post("/x", "k", "{}")), 503, "unavailable") // a second one does not fit
	readers().release()
	if got := <-slow; got.status != 201 || len(got.body) != 600_000 {
		t.Errorf("the slow one got %d, %d bytes", got.status, len(got.body))
	}
	eventually(t, "the buffers are given back", func() bool { return r.guard.Buffered() == 0 })
	if got := r.send(post("/x", "k", "{}")); got.status != 201 || !got.replayed() {
		t.Errorf("a later one got %d, replayed %v", got.status, got.replayed())
	}
}

func TestBudget_answerThatWaitersShareIsCountedOnceUntilTheLastIsSent(t *testing.T) {
	handler := newGate(t)
	r, readers := largeAnswers(t, handler)
	first := r.begin(post("/x", "k", "{}"))
	handler.inside(t)
	others := r.beginMany(5, post("/x", "k", "{}"))
	r.waiters("k", 5)
	handler.release()
	r.want(<-first, 201, "")
	for range others {
		readers().inside(t)
	}
	if n := r.guard.Buffered(); n < 590_000 || n > 1<<20 {
		t.Errorf("%d bytes are counted while five share 600,000", n)
	}
	readers().release()
	for _, other := range others {
		if got := <-other; got.status != 201 || len(got.body) != 600_000 {
			t.Errorf("a waiter got %d, %d bytes", got.status, len(got.body))
		}
	}
	eventually(t, "the buffers are given back", func() bool { return r.guard.Buffered() == 0 })
}

func TestBudget_lateWritesAfterAPanicAreNotHeld(t *testing.T) {
	r := newRig(t)
	var left sync.WaitGroup
	var g *gate
	r.handle("/x", idemhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
		left.Go(func() {
			g.pass()
			_, _ = w.Write(make([]byte, 1<<20))
		})
		panic(http.ErrAbortHandler)
	})
	r.serve()
	g = newGate(t)
	for i := range 3 {
		if got := r.send(post("/x", fmt.Sprint("k", i), "{}")); got.err == nil {
			t.Errorf("got %d, want a connection that is cut", got.status)
		}
	}
	g.release()
	left.Wait()
	if n := r.guard.Buffered(); n != 0 {
		t.Errorf("%d bytes are held for handlers that have panicked", n)
	}
}

func TestBudget_stalledLargeBodiesDoNotKeepSmallRequestsOut(t *testing.T) {
	r := newRig(t, func(c *idemhttp.Config) { c.MaxBuffers = 1 << 20 })
	r.handle("/x", idemhttp.Route{MaxBody: 1 << 20, MaxHeld: 1 << 20}, func(w http.ResponseWriter, req *http.Request) {
		if err := insertOrder(req); err != nil {
			panic(err)
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "done")
	})
	r.serve()
	for size := 530_000; size > 0; size /= 2 { // until nothing larger fits
		for i := range 2 {
			conn := r.dial()
			defer func() { _ = conn.Close() }()
			held := r.guard.Buffered()
			write(t, conn, head("/x", fmt.Sprint("slow", size, "-", i), 1<<20)+strings.Repeat("x", size))
			eventually(t, "the stalled body is held or refused", func() bool {
				_ = conn.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
				n, _ := conn.Read(make([]byte, 1))
				return n > 0 || r.guard.Buffered() > held || size <= 4096
			})
		}
	}
	if n := r.guard.Buffered(); n < 1<<19 {
		t.Fatalf("the stalled bodies hold %d bytes, which is too little to keep others out", n)
	}
	for i := range 20 {
		r.want(r.send(post("/x", fmt.Sprint("small", i), `{"customer_id":1}`)), 201, "")
	}
	r.wantRows("select count(*) from orders", 20)
}
