package idemhttp_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
)

// Without Config.Observe, and with one that allocates nothing, the events of a replay cost
// no memory.
func TestObserve_theEventsOfAReplayAllocateNothing(t *testing.T) {
	pool := pgtest.New(t)
	var seen atomic.Int64
	for name, observe := range map[string]func(context.Context, idem.Event){
		"nil":   nil,
		"count": func(context.Context, idem.Event) { seen.Add(1) },
	} {
		db, err := idem.Open(t.Context(), pool, idem.Config{Observe: observe})
		if err != nil {
			t.Fatal(err)
		}
		g, err := idemhttp.New(db, idemhttp.Config{Scope: idemhttp.Public()})
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(1000, idemhttp.Telling(g)); n != 0 {
			t.Errorf("%s: %v allocations, want none", name, n)
		}
	}
	if seen.Load() < 2000 {
		t.Errorf("%d events were told, want two for each run", seen.Load())
	}
}

// An observer that panics at every event changes nothing for clients, and is told once.
func TestObserve_onePanicsAndRequestsGoOn(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)

	r := newRig(t)
	var events atomic.Int64
	db, err := idem.Open(t.Context(), r.pool, idem.Config{Observe: func(context.Context, idem.Event) {
		events.Add(1)
		panic("a bug in counting")
	}})
	if err != nil {
		t.Fatal(err)
	}
	if r.guard, err = idemhttp.New(db, idemhttp.Config{Scope: bearer}); err != nil {
		t.Fatal(err)
	}
	var runs atomic.Int64
	r.handle("/orders", idemhttp.Route{}, createOrder(&runs))
	r.serve()
	for range 3 {
		r.want(r.send(post("/orders", "k", body)), http.StatusCreated, "")
	}
	r.want(r.send(post("/orders", "", body)), http.StatusBadRequest, "key-missing")
	r.wantRows("select count(*) from orders", 1)
	if events.Load() < 9 { // the route, and two for each request
		t.Errorf("%d events were told", events.Load())
	}
	if n := strings.Count(log.String(), "a bug in counting"); n != 1 {
		t.Errorf("the panic was told %d times, want once:\n%s", n, log.String())
	}
}

// Every request has one start, and one end with an outcome of the set, whatever becomes of
// it; and every panic of the program's is told once.
func TestObserve_everyStartHasItsEnd(t *testing.T) {
	r := newRig(t)
	var runs atomic.Int64
	r.handle("/orders", idemhttp.Route{}, createOrder(&runs))
	r.handle("/panic", idemhttp.Route{}, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	r.handle("/check", idemhttp.Route{ReplayCheck: func(*http.Request, idem.Answer) error { panic(http.ErrAbortHandler) }}, createOrder(&runs))
	r.handle("/format", idemhttp.Route{KeyFormat: func(string) error { panic(http.ErrAbortHandler) }}, createOrder(&runs))
	r.handle("/pay", onALease, func(_ http.ResponseWriter, req *http.Request) {
		_, _ = idem.Call(req.Context(), keyless(), func(context.Context, string) (receipt, error) { panic("after the bank has charged") })
	})
	r.handle("/commit", idemhttp.Route{}, func(_ http.ResponseWriter, req *http.Request) {
		_, _ = idem.Tx(req.Context()).Exec(req.Context(), "commit")
		panic("after its commit")
	})
	r.serve()
	for _, s := range []sending{post("/orders", "k", body), post("/orders", "k", body), post("/orders", "", body), post("/panic", "p", body),
		post("/check", "c", body), post("/check", "c", body), post("/format", "f", body), post("/orders", "k", `{"amount":2}`),
		post("/pay", "paid", body), post("/commit", "committed", body)} {
		_ = r.send(s) // some have no answer
	}
	r.server.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	kinds, outcomes := map[idem.EventKind]int{}, map[idem.Outcome]int{}
	for _, e := range r.events {
		kinds[e.Kind]++
		if e.Kind == idem.EventRequest {
			outcomes[e.Outcome]++
			if panicked := errors.Is(e.Err, idem.ErrPanicked); panicked != (e.Status == 0) {
				t.Errorf("%s was answered %d, and panicked: %v (%v)", e.Route, e.Status, panicked, e.Err)
			}
		}
		if e.Kind == idem.EventPanic && (e.Outcome == "" || !errors.Is(e.Err, idem.ErrPanicked)) {
			t.Errorf("a panic has the outcome %q, and %v", e.Outcome, e.Err)
		}
	}
	if kinds[idem.EventRoute] != 6 || kinds[idem.EventStart] != 10 || kinds[idem.EventRequest] != 10 || kinds[idem.EventPanic] != 4 {
		t.Errorf("told %v, want 6 routes, 10 starts, 10 ends and 4 panics", kinds)
	}
	want := map[idem.Outcome]int{idem.OutcomeExecuted: 2, idem.OutcomeReplayed: 1, idem.OutcomeKeyMissing: 1, idem.OutcomeMismatch: 1,
		idem.OutcomeReleased: 3, idem.OutcomeUnknown: 2}
	if !maps.Equal(outcomes, want) {
		t.Errorf("the outcomes are %v, want %v", outcomes, want)
	}
}

// A repeat whose answer is fetched anew is told with the status that it got.
func TestObserve_aFetchedReplayHasTheStatusThatWasSent(t *testing.T) {
	r := newRig(t)
	status := 0 // that Fetch writes
	r.handle("/orders", idemhttp.Route{Replay: idemhttp.ReplayResource, Fetch: func(w http.ResponseWriter, _ *http.Request, ref string) {
		if status != 0 {
			w.WriteHeader(status)
		}
	}}, func(w http.ResponseWriter, req *http.Request) {
		idem.Reference(req.Context(), "order:1")
		w.WriteHeader(http.StatusCreated)
	})
	r.serve()
	for _, c := range []struct{ fetched, want int }{{0, 201}, {0, 201}, {200, 200}, {500, 500}} {
		status = c.fetched
		if got := r.send(post("/orders", "k", body)); got.status != c.want {
			t.Errorf("answered %d, want %d", got.status, c.want)
		}
	}
	r.server.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	var told []int
	for _, e := range r.events {
		if e.Kind == idem.EventRequest {
			told = append(told, e.Status)
		}
	}
	if want := []int{201, 201, 200, 500}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}
