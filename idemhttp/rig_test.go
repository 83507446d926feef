package idemhttp_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5/pgxpool"
)

// rig is a real server with guarded routes on a database of its own.
type rig struct {
	t      testing.TB
	pool   *pgxpool.Pool
	db     *idem.DB
	guard  *idemhttp.Guard
	mux    *http.ServeMux
	server *httptest.Server
	wrap   func(http.Handler) http.Handler // middleware outside the guard
	lazy   bool                            // every route has LazyClaim
	lease  time.Duration                   // of every route; zero for none

	mu     sync.Mutex
	events []idem.Event
}

// bearer is the rig's scope: the token, or guest.
func bearer(r *http.Request) (string, error) {
	switch token := r.Header.Get("Authorization"); token {
	case "":
		return "guest", nil
	case "revoked":
		return "", fmt.Errorf("the token is revoked")
	default:
		return token, nil
	}
}

type option func(*idemhttp.Config)

func newRig(t testing.TB, options ...option) *rig {
	return rigOn(t, pgtest.New(t), options...)
}

func rigOn(t testing.TB, pool *pgxpool.Pool, options ...option) *rig {
	t.Helper()
	r := &rig{t: t, pool: pool, mux: http.NewServeMux(), lazy: strings.HasPrefix(t.Name(), lazyCases)}
	if strings.HasPrefix(t.Name(), leasedCases) {
		r.lease = caseLease
	}
	_, err := r.pool.Exec(t.Context(), `create table if not exists orders (id bigint generated always as identity primary key,
		customer bigint not null, amount bigint not null, slot text unique)`)
	if err != nil {
		t.Fatal(err)
	}
	r.db, err = idem.Open(t.Context(), r.pool, idem.Config{Observe: r.observe})
	if err != nil {
		t.Fatal(err)
	}
	config := idemhttp.Config{Scope: bearer}
	for _, o := range options {
		o(&config)
	}
	if r.guard, err = idemhttp.New(r.db, config); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) observe(_ context.Context, e idem.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// outcomes counts the requests' outcomes so far.
func (r *rig) outcomes() map[idem.Outcome]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := map[idem.Outcome]int{}
	for _, e := range r.events {
		if e.Kind == idem.EventRequest {
			counts[e.Outcome]++
		}
	}
	return counts
}

// handle serves handler on path behind a route; its name is the path.
func (r *rig) handle(path string, route idemhttp.Route, handler http.HandlerFunc) {
	route.Name = "POST " + path
	route.LazyClaim = route.LazyClaim || r.lazy
	if !route.KeyOptional { // which excludes it
		route.Lease = cmp.Or(route.Lease, r.lease)
	}
	r.mux.Handle(path, r.guard.Route(route)(handler))
}

// serve starts the server.
func (r *rig) serve() {
	var h http.Handler = r.mux
	if r.wrap != nil {
		h = r.wrap(h)
	}
	r.server = httptest.NewUnstartedServer(h)
	r.server.Config.ErrorLog = discard
	r.server.Start()
	r.t.Cleanup(r.server.Close)
}

type order struct {
	ID       int64 `json:"id"`
	Customer int64 `json:"customer_id"`
	Amount   int64 `json:"amount"`
}

// createOrder is the article's handler; runs counts its first lines.
func createOrder(runs *atomic.Int64) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		runs.Add(1)
		var o order
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil || o.Amount <= 0 {
			http.Error(w, "amount must be positive", http.StatusUnprocessableEntity)
			return
		}
		err := idem.Tx(r.Context()).QueryRow(r.Context(),
			"insert into orders (customer, amount) values ($1, $2) returning id", o.Customer, o.Amount).Scan(&o.ID)
		if err != nil {
			http.Error(w, "database", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Location", fmt.Sprintf("/orders/%d", o.ID))
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(o)
	}
}

// reply is what a client got.
type reply struct {
	status int
	header http.Header
	body   string
	err    error
}

func (r reply) replayed() bool { return r.header.Get("Idempotent-Replayed") == "true" }

// problem is the code of a problem, or nothing.
func (r reply) problem() string {
	var p struct{ Code string }
	if r.header.Get("Content-Type") == "application/problem+json" {
		_ = json.Unmarshal([]byte(r.body), &p)
	}
	return p.Code
}

// sending is one request to be sent.
type sending struct {
	method, path, key, body string
	header                  http.Header
}

func post(path, key, body string) sending {
	return sending{method: http.MethodPost, path: path, key: key, body: body}
}

func (s sending) as(principal string) sending { return s.with("Authorization", principal) }

func (s sending) with(name, value string) sending {
	s.header = s.header.Clone()
	if s.header == nil {
		s.header = http.Header{}
	}
	s.header.Add(name, value)
	return s
}

func (r *rig) send(s sending) reply { return r.sendContext(context.Background(), s) }

func (r *rig) sendContext(ctx context.Context, s sending) reply {
	return transmit(ctx, r.server.Client(), r.server.URL, s)
}

// transmit sends s once to the server at base.
func transmit(ctx context.Context, client *http.Client, base string, s sending) reply {
	req, err := http.NewRequestWithContext(ctx, s.method, base+s.path, bytes.NewReader([]byte(s.body)))
	if err != nil {
		return reply{err: err}
	}
	req.GetBody = nil // the transport must not repeat by itself
	req.Header.Set("Content-Type", "application/json")
	for name, values := range s.header {
		req.Header[name] = values
	}
	if s.key != "" {
		req.Header.Add("Idempotency-Key", s.key)
	}
	res, err := client.Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	return reply{status: res.StatusCode, header: res.Header, body: string(body), err: err}
}

// together sends s n times at once.
func (r *rig) together(n int, s sending) []reply {
	replies := make([]reply, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { replies[i] = r.send(s) })
	}
	all.Wait()
	return replies
}

func (r *rig) want(got reply, status int, problem string) {
	r.t.Helper()
	if got.err != nil {
		r.t.Fatalf("no answer: %v", got.err)
	}
	if got.status != status || got.problem() != problem {
		r.t.Fatalf("got %d %q %s, want %d %q", got.status, got.problem(), got.body, status, problem)
	}
}

func (r *rig) wantRows(query string, want int, args ...any) {
	r.t.Helper()
	var got int
	if err := r.pool.QueryRow(context.Background(), query, args...).Scan(&got); err != nil {
		r.t.Fatal(err)
	}
	if got != want {
		r.t.Fatalf("%s: got %d, want %d", query, got, want)
	}
}

// wantRuns fails unless the handlers' first lines ran so often. With LazyClaim they
// run on a repeat, too, and that nothing came of it is for the rows to say.
func (r *rig) wantRuns(runs *atomic.Int64, want int64) {
	r.t.Helper()
	if got := runs.Load(); got < want || got > want && !r.lazy {
		r.t.Errorf("the handler ran %d times, want %d", got, want)
	}
}

// eventually waits, within a bound, until condition holds.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.NewTimer(15 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("it never happened: %s", what)
		}
	}
}

// long skips, with -short, what waits for limits and leases to be over.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes long; run it without -short")
	}
}
