package idemhttp_test

import (
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
)

// requests are the events of requests so far.
func (r *rig) requests() (all []idem.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.Kind == idem.EventRequest {
			all = append(all, e)
		}
	}
	return all
}

// wantFirst compares the ids that the last request's event names: its own, and the
// first one's.
func (r *rig) wantFirst(own, first string) {
	r.t.Helper()
	all := r.requests()
	if e := all[len(all)-1]; e.Request != own || e.FirstRequest != first {
		r.t.Errorf("%s: the event names %q and %q, want %q and %q", e.Outcome, e.Request, e.FirstRequest, own, first)
	}
}

const anOrder = `{"customer_id":123,"amount":1500}`

func identified(path, key, body, id string) sending {
	return post(path, key, body).with("X-Request-Id", id)
}

// A repeat names the request that made its answer, also in another process.
func TestRequestID_aRepeatNamesTheFirst(t *testing.T) {
	for way, route := range map[string]idemhttp.Route{"in the transaction": {}, "on a lease": {Lease: idemhttp.DefaultLease}} {
		t.Run(way, func(t *testing.T) {
			var runs atomic.Int64
			r := newRig(t)
			r.handle("/orders", route, createOrder(&runs))
			r.serve()
			r.want(r.send(identified("/orders", "k", anOrder, "req-1")), 201, "")
			r.wantFirst("req-1", "")
			r.want(r.send(identified("/orders", "k", anOrder, "req-2")), 201, "")
			r.wantFirst("req-2", "req-1")
			r.want(r.send(identified("/orders", "k", `{"customer_id":123,"amount":1501}`, "req-3")), 409, "key-mismatch")
			r.wantFirst("req-3", "req-1")
			other := rigOn(t, r.pool)
			other.handle("/orders", route, createOrder(&runs))
			other.serve()
			other.want(other.send(identified("/orders", "k", anOrder, "req-4")), 201, "")
			other.wantFirst("req-4", "req-1")
			r.wantRuns(&runs, 1)
		})
	}
}

// Those who wait in the first one's process are told by it, and name it.
func TestRequestID_whoWaitsNamesTheFirst(t *testing.T) {
	r := newRig(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	r.handle("/orders", idemhttp.Route{}, func(w http.ResponseWriter, req *http.Request) {
		close(entered)
		<-leave
		http.Error(w, "not remembered", http.StatusBadGateway)
	})
	r.serve()
	first, second := make(chan reply, 1), make(chan reply, 1)
	go func() { first <- r.send(identified("/orders", "k", anOrder, "req-1")) }()
	<-entered
	r.want(r.send(identified("/orders", "k", "{}", "req-2")), 409, "key-mismatch")
	r.wantFirst("req-2", "req-1")
	go func() { second <- r.send(identified("/orders", "k", anOrder, "req-3")) }()
	r.waiters("k", 1)
	close(leave)
	r.want(<-first, 502, "")
	r.want(<-second, 502, "")
	for _, e := range r.requests() {
		want := ""
		if e.Request != "req-1" {
			want = "req-1"
		}
		if e.FirstRequest != want {
			t.Errorf("%s names %q, want %q", e.Request, e.FirstRequest, want)
		}
	}
}

// What cannot stand in a log as it is counts as none: it is neither cut off nor changed.
func TestRequestID_isVisibleASCIIAndBounded(t *testing.T) {
	var runs atomic.Int64
	r := newRig(t, func(c *idemhttp.Config) {
		c.RequestID = func(req *http.Request) string { return req.Header.Get("Correlation") }
	})
	r.handle("/orders", idemhttp.Route{}, createOrder(&runs))
	r.serve()
	longest := strings.Repeat("x", idemhttp.MaxRequestID)
	for id, want := range map[string]string{longest: longest, longest + "x": "", "a b": "", "ä": "", "": "", "{1}~": "{1}~"} {
		key := "k-" + hex.EncodeToString([]byte(id[max(len(id)-100, 0):])) + strconv.Itoa(len(id))
		s := post("/orders", key, anOrder).with("Correlation", id).with("X-Request-Id", "another")
		r.want(r.send(s), 201, "")
		r.wantFirst(want, "")
		r.wantRows("select count(*) from idem.idempotency_keys where key = $1 and coalesce(request_id, '') = $2", 1, key, want)
	}
}

// Nothing is written for what has neither an id nor a trace, and what an entombed answer
// had goes with it.
func TestRequestID_isNotKeptWithoutNeed(t *testing.T) {
	var runs atomic.Int64
	r := newRig(t)
	r.handle("/orders", idemhttp.Route{Tombstone: idemhttp.DefaultTombstone}, createOrder(&runs))
	r.serve()
	r.want(r.send(post("/orders", "none", anOrder)), 201, "")
	r.wantRows("select count(*) from idem.idempotency_keys where request_id is null and traceparent is null", 1)
	r.want(r.send(identified("/orders", "k", anOrder, "req-1")), 201, "")
	if _, err := r.pool.Exec(t.Context(), `update idem.idempotency_keys set created_at = created_at - interval '80 days',
		expires_at = expires_at - interval '80 days', tombstone_until = tombstone_until - interval '80 days'`); err != nil {
		t.Fatal(err)
	}
	if _, err := idem.Sweep(t.Context(), r.db); err != nil {
		t.Fatal(err)
	}
	r.wantRows("select count(*) from idem.idempotency_keys where state = 'tombstone' and request_id is null", 2)
	r.want(r.send(identified("/orders", "k", anOrder, "req-2")), 409, "answer-expired")
	r.wantFirst("req-2", "")
}
