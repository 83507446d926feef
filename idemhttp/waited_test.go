package idemhttp_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
)

// slowBody is one that ends some time after it has begun, and says when.
type slowBody struct {
	io.Reader
	takes time.Duration
	ended chan time.Time // holds one
}

func (b *slowBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		<-time.After(b.takes)
		b.ended <- time.Now()
	}
	return n, err
}

// What a client takes to send its request is no time that it waits for the first one.
func TestObserve_waitedIsWithoutTheTimeOfTheBody(t *testing.T) {
	r := newRig(t)
	running, gate := make(chan struct{}), make(chan struct{})
	r.handle("/x", idemhttp.Route{}, func(w http.ResponseWriter, _ *http.Request) {
		close(running)
		<-gate
		w.WriteHeader(http.StatusCreated)
	})
	r.serve()
	first := make(chan reply, 1)
	go func() { first <- r.send(post("/x", "k", "{}")) }()
	<-running
	body := &slowBody{strings.NewReader("{}"), 300 * time.Millisecond, make(chan time.Time, 1)}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.server.URL+"/x", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", "k")
	answered := make(chan time.Time, 1)
	go func() {
		if res, err := r.server.Client().Do(req); err == nil {
			res.Body.Close()
		}
		answered <- time.Now()
	}()
	r.waiters("k", 1)
	close(gate)
	atMost := (<-answered).Sub(<-body.ended)
	r.want(<-first, http.StatusCreated, "")
	r.server.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	replayed := 0
	for _, e := range r.events {
		if e.Kind != idem.EventRequest || e.Outcome != idem.OutcomeReplayed {
			continue
		}
		if replayed++; e.Waited <= 0 || e.Waited > atMost {
			t.Errorf("waited %v, want %v at most, since the body had ended", e.Waited, atMost)
		}
	}
	if replayed != 1 {
		t.Errorf("%d replays were told, want 1", replayed)
	}
}
