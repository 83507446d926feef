package tracing_test

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/tracing"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// rig is a database, the spans that were made on it and the events that were raised.
type rig struct {
	t        testing.TB
	pool     *pgxpool.Pool
	provider *sdktrace.TracerProvider
	exporter *tracetest.InMemoryExporter
	begun    *begun

	mu     sync.Mutex
	events []idem.Event
	traces []string // of each event
}

func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{t: t, pool: pgtest.New(t), exporter: tracetest.NewInMemoryExporter(), begun: &begun{}}
	r.provider = sdktrace.NewTracerProvider(sdktrace.WithSyncer(r.exporter), sdktrace.WithSpanProcessor(r.begun))
	r.exec("create table orders (id bigint generated always as identity primary key)")
	return r
}

// begun knows the names of the spans that have begun.
type begun struct {
	mu    sync.Mutex
	names []string
}

func (b *begun) OnStart(_ context.Context, s sdktrace.ReadWriteSpan) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.names = append(b.names, s.Name())
}

func (b *begun) has(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Contains(b.names, name)
}

func (*begun) OnEnd(sdktrace.ReadOnlySpan)      {}
func (*begun) Shutdown(context.Context) error   { return nil }
func (*begun) ForceFlush(context.Context) error { return nil }

func (r *rig) exec(sql string, args ...any) {
	r.t.Helper()
	if _, err := r.pool.Exec(context.Background(), sql, args...); err != nil {
		r.t.Fatal(err)
	}
}

// open opens the database as a process of its own would.
func (r *rig) open(config tracing.Config) *idem.DB {
	r.t.Helper()
	if config.Provider == nil {
		config.Provider = r.provider
	}
	db, err := idem.Open(r.t.Context(), r.pool, idem.Config{Tracer: tracing.New(config), Observe: r.observe})
	if err != nil {
		r.t.Fatal(err)
	}
	return db
}

func (r *rig) observe(ctx context.Context, e idem.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events, r.traces = append(r.events, e), append(r.traces, tracing.TraceID(ctx))
}

// told are the events of requests so far.
func (r *rig) told() (requests []idem.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.Kind == idem.EventRequest {
			requests = append(requests, e)
		}
	}
	return requests
}

// serve serves do on a guarded route of a guard of its own.
func (r *rig) serve(db *idem.DB, route idemhttp.Route, do http.HandlerFunc) *httptest.Server {
	r.t.Helper()
	guard, err := idemhttp.New(db, idemhttp.Config{Scope: func(*http.Request) (string, error) { return "somebody", nil }})
	if err != nil {
		r.t.Fatal(err)
	}
	route.Name = "POST /orders"
	s := httptest.NewUnstartedServer(guard.Route(route)(do))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of panics
	s.Start()
	r.t.Cleanup(s.Close)
	return s
}

// send sends a request and returns its status. id is its X-Request-Id.
func (r *rig) send(s *httptest.Server, key, body, id string) int {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, s.URL, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", key)
	req.Header.Set("X-Request-Id", id)
	resp, err := s.Client().Do(req)
	if err != nil {
		r.t.Error(err)
		return 0
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode
}

// order inserts a row and answers 201.
func order(w http.ResponseWriter, r *http.Request) {
	if _, err := idem.Tx(r.Context()).Exec(r.Context(), "insert into orders default values"); err != nil {
		http.Error(w, "no order", http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusCreated)
}

// spans are those that have ended so far, of one name.
func (r *rig) spans(name string) (all tracetest.SpanStubs) {
	for _, s := range r.exporter.GetSpans() {
		if s.Name == name {
			all = append(all, s)
		}
	}
	return all
}

// one is the one span of a name.
func (r *rig) one(name string) tracetest.SpanStub {
	r.t.Helper()
	r.until(func() bool { return len(r.spans(name)) > 0 }) // a long answer leaves before its span ends
	all := r.spans(name)
	if len(all) != 1 {
		r.t.Fatalf("there are %d spans %q, want one of: %v", len(all), name, r.names())
	}
	return all[0]
}

func (r *rig) names() (names []string) {
	for _, s := range r.exporter.GetSpans() {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return names
}

// wantNames fails unless exactly these spans have ended.
func (r *rig) wantNames(want ...string) {
	r.t.Helper()
	slices.Sort(want)
	if got := r.names(); !slices.Equal(got, want) {
		r.t.Errorf("the spans are\n %q, want\n %q", got, want)
	}
}

func (r *rig) wantChild(child, parent tracetest.SpanStub) {
	r.t.Helper()
	if child.Parent.SpanID() != parent.SpanContext.SpanID() || child.SpanContext.TraceID() != parent.SpanContext.TraceID() {
		r.t.Errorf("%q is no child of %q", child.Name, parent.Name)
	}
}

// wantLink fails unless from has exactly one link, to the span to.
func (r *rig) wantLink(from, to tracetest.SpanStub) {
	r.t.Helper()
	if len(from.Links) != 1 || from.Links[0].SpanContext.SpanID() != to.SpanContext.SpanID() ||
		from.Links[0].SpanContext.TraceID() != to.SpanContext.TraceID() {
		r.t.Errorf("%q has the links %v, want one to %q %v", from.Name, from.Links, to.Name, to.SpanContext.SpanID())
	}
}

// wantNoLink fails if s has a link.
func (r *rig) wantNoLink(s tracetest.SpanStub) {
	r.t.Helper()
	if len(s.Links) != 0 {
		r.t.Errorf("%q has the links %v, want none", s.Name, s.Links)
	}
}

// value is a span's attribute as text; empty if it has none.
func value(s tracetest.SpanStub, key attribute.Key) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.String()
		}
	}
	return ""
}

// wantValues compares attributes, given as name, value, name, value.
func (r *rig) wantValues(s tracetest.SpanStub, pairs ...string) {
	r.t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if got := value(s, attribute.Key(pairs[i])); got != pairs[i+1] {
			r.t.Errorf("%q: %s is %q, want %q", s.Name, pairs[i], got, pairs[i+1])
		}
	}
}

func (r *rig) wantFailed(s tracetest.SpanStub, want bool) {
	r.t.Helper()
	if got := s.Status.Code == codes.Error; got != want {
		r.t.Errorf("%q has the status %v, want an error: %v", s.Name, s.Status, want)
	}
}

// wantSilent fails if a word is anywhere in the spans.
func (r *rig) wantSilent(words ...string) {
	r.t.Helper()
	for _, s := range r.exporter.GetSpans() {
		texts := []string{s.Name, s.Status.Description}
		for _, a := range s.Attributes {
			texts = append(texts, a.Value.String())
		}
		for _, e := range s.Events {
			texts = append(texts, e.Name)
			for _, a := range e.Attributes {
				texts = append(texts, a.Value.String())
			}
		}
		for _, word := range words {
			if strings.Contains(strings.Join(texts, "\n"), word) {
				r.t.Errorf("%q holds %q: %q", s.Name, word, texts)
			}
		}
	}
}
