package metrics_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/metrics"
)

// trouble is what a handler of this test does, by its request's body.
func trouble(w http.ResponseWriter, r *http.Request, body string) {
	switch body {
	case "refuse":
		w.WriteHeader(http.StatusConflict)
	case "release":
		w.WriteHeader(http.StatusUnprocessableEntity)
	case "large":
		_, _ = w.Write(make([]byte, 100))
	case "commit":
		_, _ = idem.Tx(r.Context()).Exec(r.Context(), "commit")
	case "sleep":
		<-r.Context().Done()
	case "lose":
		_, _ = idemPool(r).Exec(r.Context(), "update idem.idempotency_keys set fence = gen_random_uuid() where state = 'claimed'")
		w.WriteHeader(http.StatusCreated)
	default:
		w.WriteHeader(http.StatusCreated)
	}
}

type poolKey struct{}

func idemPool(r *http.Request) execer { return r.Context().Value(poolKey{}).(execer) }

// sent is one request of the test: on a route, with keys, and how its event has to name it.
type sent struct {
	path, body string
	keys       []string
	outcome    idem.Outcome
	status     int
}

func TestRequests_everyOutcomeIsCountedAsOftenAsItWas(t *testing.T) {
	pool := pgtest.Broken(t) // a claim that nobody has, in the end
	m := measure(t, metrics.Config{})
	db := open(t, pool, m.Observe)
	guard, err := idemhttp.New(db, idemhttp.Config{Wait: -1, Scope: func(r *http.Request) (string, error) {
		if r.Header.Get("X-Who") == "nobody" {
			return "", errors.New("nobody")
		}
		return "s", nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	checked := false
	mux := http.NewServeMux()
	arrived, release := make(chan struct{}), make(chan struct{})
	for path, route := range map[string]idemhttp.Route{
		"/plain":    {},
		"/optional": {KeyOptional: true},
		"/small":    {MaxBody: 10, MaxStored: 50},
		"/checked":  {ReplayCheck: func(*http.Request, idem.Answer) error { checked = true; return errors.New("not any more") }},
		"/buried":   {Tombstone: time.Hour},
		"/short":    {Limit: 50 * time.Millisecond},
		"/leased":   {Lease: 30 * time.Second},
		"/held":     {},
	} {
		route.Name = "POST " + path
		mux.Handle(path, guard.Route(route)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if path == "/held" {
				close(arrived)
				<-release
			}
			body := make([]byte, 100)
			n, _ := r.Body.Read(body)
			trouble(w, r, string(body[:n]))
		})))
	}
	send := func(s sent) {
		t.Helper()
		r := httptest.NewRequest("POST", s.path, strings.NewReader(s.body))
		r = r.WithContext(context.WithValue(t.Context(), poolKey{}, execer(pool)))
		r.Header["Idempotency-Key"] = s.keys
		if s.outcome == idem.OutcomeUnauthenticated {
			r.Header.Set("X-Who", "nobody")
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if w.Code != s.status {
			t.Errorf("%s: %d %s, want %d", s.outcome, w.Code, w.Body, s.status)
		}
	}
	m.want(t, map[string]float64{ // before any request
		`idem_requests_total{outcome="replayed",route="POST /plain"}`:        0,
		`idem_request_seconds_count{outcome="unknown",route="POST /leased"}`: 0,
		`idem_wait_seconds_count{route="POST /plain"}`:                       0,
		`idem_in_flight{route="POST /held"}`:                                 0,
	})

	key := func(k string) []string { return []string{k} }
	want := map[string]map[idem.Outcome]float64{}
	note := func(s sent) {
		if want[s.path] == nil {
			want[s.path] = map[idem.Outcome]float64{}
		}
		want[s.path][s.outcome]++
	}
	for _, s := range []sent{
		{"/plain", "x", key("1"), idem.OutcomeExecuted, 201},
		{"/plain", "x", key("1"), idem.OutcomeReplayed, 201},
		{"/plain", "x", key("1"), idem.OutcomeReplayed, 201},
		{"/plain", "y", key("1"), idem.OutcomeMismatch, 409},
		{"/plain", "refuse", key("2"), idem.OutcomeRefused, 409},
		{"/plain", "refuse", key("2"), idem.OutcomeReplayed, 409},
		{"/plain", "release", key("3"), idem.OutcomeReleased, 422},
		{"/plain", "x", nil, idem.OutcomeKeyMissing, 400},
		{"/plain", "x", []string{"1", "2"}, idem.OutcomeKeyInvalid, 400},
		{"/plain", "x", key("4"), idem.OutcomeUnauthenticated, 401},
		{"/plain", "commit", key("5"), idem.OutcomeUnknown, 409},
		{"/optional", "x", nil, idem.OutcomeUnguarded, 201},
		{"/small", "0123456789A", key("1s"), idem.OutcomeBodyTooLarge, 413},
		{"/small", "large", key("2s"), idem.OutcomeExecuted, 200},
		{"/small", "large", key("2s"), idem.OutcomeWithheld, 409},
		{"/checked", "x", key("1c"), idem.OutcomeExecuted, 201},
		{"/checked", "x", key("1c"), idem.OutcomeReplayRefused, 403},
		{"/buried", "x", key("1b"), idem.OutcomeExecuted, 201},
		{"/short", "sleep", key("1t"), idem.OutcomeUnavailable, 503},
		{"/leased", "lose", key("1l"), idem.OutcomeLeaseLost, 425},
	} {
		send(s)
		note(s)
	}
	exec(t, pool, "update idem.idempotency_keys set created_at = now() - interval '2 days', expires_at = now() - interval '1 minute' where key = '1b'")
	buried := sent{"/buried", "x", key("1b"), idem.OutcomeExpired, 409}
	send(buried)
	note(buried)

	first := make(chan struct{})
	held := sent{"/held", "x", key("1h"), idem.OutcomeExecuted, 201}
	go func() { defer close(first); send(held) }()
	<-arrived
	m.want(t, map[string]float64{`idem_in_flight{route="POST /held"}`: 1})
	early := sent{"/held", "x", key("1h"), idem.OutcomeInFlight, 425}
	send(early)
	note(early)
	close(release)
	<-first
	note(held)

	seen := map[idem.Outcome]bool{}
	got := m.scrape(t)
	for path, outcomes := range want {
		for _, o := range idem.Outcomes() {
			name := `{outcome="` + string(o) + `",route="POST ` + path + `"}`
			if n := got["idem_requests_total"+name]; n != outcomes[o] {
				t.Errorf("idem_requests_total%s is %v, want %v", name, n, outcomes[o])
			}
			if n := got["idem_request_seconds_count"+name]; n != outcomes[o] {
				t.Errorf("idem_request_seconds_count%s is %v, want %v", name, n, outcomes[o])
			}
			seen[o] = seen[o] || outcomes[o] > 0
		}
		if n := got[`idem_in_flight{route="POST `+path+`"}`]; n != 0 {
			t.Errorf("%v requests are in flight on %s, in the end", n, path)
		}
	}
	for _, o := range idem.Outcomes() {
		if !seen[o] {
			t.Errorf("no request of this test is %s", o)
		}
	}
	if !checked {
		t.Error("the caller's right was not checked")
	}
}

// A request that a function of the program's ends by a panic has ended, too.
func TestRequests_aPanicAroundTheHandlerEndsTheRequest(t *testing.T) {
	m := measure(t, metrics.Config{})
	db := open(t, pgtest.New(t), m.Observe)
	guard, err := idemhttp.New(db, idemhttp.Config{Scope: func(*http.Request) (string, error) { panic("scope") }})
	if err != nil {
		t.Fatal(err)
	}
	h := guard.Route(idemhttp.Route{Name: "POST /x"})(http.NotFoundHandler())
	func() {
		defer func() {
			if v := recover(); v != "scope" {
				t.Errorf("recovered %v, want the function's own panic", v)
			}
		}()
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/x", nil))
	}()
	m.want(t, map[string]float64{
		`idem_in_flight{route="POST /x"}`:                         0,
		`idem_requests_total{outcome="released",route="POST /x"}`: 1,
	})
}

// Of two duplicates, where one may wait, it is measured how long that does.
func TestRequests_waitingIsMeasured(t *testing.T) {
	m := measure(t, metrics.Config{})
	db := open(t, pgtest.New(t), m.Observe)
	guard, err := idemhttp.New(db, idemhttp.Config{Scope: idemhttp.Public(), MaxWaiters: 1})
	if err != nil {
		t.Fatal(err)
	}
	started, release := make(chan struct{}), make(chan struct{})
	h := guard.Route(idemhttp.Route{Name: "POST /x"})(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(started)
		<-release
		w.WriteHeader(http.StatusCreated)
	}))
	ended := make(chan int)
	send := func() {
		r := httptest.NewRequest("POST", "/x", nil)
		r.Header.Set("Idempotency-Key", "k")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		ended <- w.Code
	}
	go send()
	<-started
	go send()
	go send()
	if code := <-ended; code != http.StatusTooEarly {
		t.Fatalf("the duplicate that may not wait got %d", code)
	}
	close(release)
	if a, b := <-ended, <-ended; a != 201 || b != 201 {
		t.Fatalf("got %d and %d", a, b)
	}
	m.want(t, map[string]float64{
		`idem_requests_total{outcome="executed",route="POST /x"}`:  1,
		`idem_requests_total{outcome="replayed",route="POST /x"}`:  1,
		`idem_requests_total{outcome="in_flight",route="POST /x"}`: 1,
		`idem_wait_seconds_count{route="POST /x"}`:                 1,
	})
}
