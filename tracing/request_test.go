package tracing_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/tracing"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

const (
	spanRequest = "request POST /orders"
	spanClaim   = "claim POST /orders"
	spanWait    = "wait POST /orders"
	spanHandler = "handler POST /orders"
	spanCommit  = "commit POST /orders"
)

func TestRequest_stepsAreItsChildren(t *testing.T) {
	r := newRig(t)
	s := r.serve(r.open(tracing.Config{}), idemhttp.Route{}, order)
	if got := r.send(s, "k1", "a body", "req-1"); got != 201 {
		t.Fatalf("answered %d", got)
	}
	r.wantNames(spanRequest, spanClaim, spanHandler, spanCommit)
	request := r.one(spanRequest)
	for _, name := range []string{spanClaim, spanHandler, spanCommit} {
		r.wantChild(r.one(name), request)
		r.wantFailed(r.one(name), false)
	}
	r.wantNoLink(request)
	r.wantFailed(request, false)
	r.wantValues(request, "idem.route", "POST /orders", "idem.outcome", "executed", "http.response.status_code", "201",
		"idem.request.id", "req-1", "idem.first_request.id", "")
	r.wantValues(r.one(spanClaim), "idem.outcome", "")
	r.wantValues(r.one(spanHandler), "http.response.status_code", "201")
	r.wantValues(r.one(spanCommit), "idem.outcome", "executed")
	r.wantSilent("k1", "a body", "somebody")
}

// A replay finds the first one's span by what is stored with the key, in this process and
// in another, whose clients know nothing of the first trace.
func TestRequest_replayLinksToTheFirst(t *testing.T) {
	for name, elsewhere := range map[string]bool{"the same guard": false, "another process": true} {
		for way, route := range map[string]idemhttp.Route{"in the transaction": {}, "on a lease": {Lease: idemhttp.DefaultLease}} {
			t.Run(name+" "+way, func(t *testing.T) {
				r := newRig(t)
				s := r.serve(r.open(tracing.Config{}), route, order)
				r.send(s, "k", "a", "req-1")
				first := r.one(spanRequest)
				r.exporter.Reset()
				if elsewhere {
					s = r.serve(r.open(tracing.Config{}), route, order)
				}
				r.send(s, "k", "a", "req-2")
				r.wantNames(spanRequest, spanClaim)
				replay := r.one(spanRequest)
				r.wantLink(replay, first)
				if replay.SpanContext.TraceID() == first.SpanContext.TraceID() {
					t.Error("the replay is in the first one's trace")
				}
				r.wantValues(replay, "idem.outcome", "replayed", "idem.request.id", "req-2", "idem.first_request.id", "req-1")
				r.wantValues(r.one(spanClaim), "idem.outcome", "replayed")
				r.wantFailed(replay, false)
				if told := r.told(); len(told) != 2 || told[0].FirstRequest != "" || told[1].FirstRequest != "req-1" || told[1].Request != "req-2" {
					t.Errorf("the events are %+v", told)
				}
			})
		}
	}
}

func TestRequest_mismatchLinksToWhoseKeyItIs(t *testing.T) {
	r := newRig(t)
	s := r.serve(r.open(tracing.Config{}), idemhttp.Route{}, order)
	r.send(s, "k", "a", "req-1")
	first := r.one(spanRequest)
	r.exporter.Reset()
	r.send(s, "k", "b", "req-2")
	r.wantLink(r.one(spanRequest), first)
	r.wantValues(r.one(spanRequest), "idem.outcome", "mismatch", "idem.first_request.id", "req-1", "http.response.status_code", "409")
	r.wantFailed(r.one(spanRequest), false)
}

// A duplicate waits, in the same process for the flight and in another for the database,
// and links to the one that it has waited for.
func TestRequest_waitIsASpan(t *testing.T) {
	for name, elsewhere := range map[string]bool{"the same guard": false, "another process": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			entered, leave := make(chan struct{}), make(chan struct{})
			slow := func(w http.ResponseWriter, req *http.Request) {
				close(entered)
				<-leave
				order(w, req)
			}
			s := r.serve(r.open(tracing.Config{}), idemhttp.Route{}, slow)
			other := s
			if elsewhere {
				other = r.serve(r.open(tracing.Config{}), idemhttp.Route{}, slow)
			}
			answered := make(chan int, 2)
			go func() { answered <- r.send(s, "k", "a", "req-1") }()
			<-entered
			go func() { answered <- r.send(other, "k", "a", "req-2") }()
			r.until(func() bool { return r.waiting(elsewhere) })
			close(leave)
			for range 2 {
				if got := <-answered; got != 201 {
					t.Errorf("answered %d", got)
				}
			}
			requests := r.spans(spanRequest)
			if len(requests) != 2 {
				t.Fatalf("the spans are %q", r.names())
			}
			first, second := requests[0], requests[1]
			if value(first, "idem.outcome") != "executed" {
				first, second = second, first
			}
			wait := r.one(spanWait)
			r.wantChild(wait, second)
			r.wantLink(second, first)
			r.wantNoLink(first)
			r.wantValues(second, "idem.outcome", "replayed", "idem.first_request.id", "req-1")
		})
	}
}

// until waits until is, which is asked again and again.
func (r *rig) until(is func() bool) {
	r.t.Helper()
	deadline := time.After(10 * time.Second)
	for !is() {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			r.t.Fatal("waited 10 s in vain")
		}
	}
}

// waiting reports whether a duplicate waits: elsewhere, once it has asked for the key in
// vain; in the first one's process it may wait at once.
func (r *rig) waiting(elsewhere bool) bool {
	if elsewhere {
		for _, s := range r.spans(spanClaim) {
			if value(s, "idem.outcome") == "in_flight" {
				return true
			}
		}
		return false
	}
	return r.begun.has(spanWait)
}

// What is rolled back leaves no trace to link to: the next one runs as the first.
func TestRequest_whatIsRolledBackIsNoFirst(t *testing.T) {
	r := newRig(t)
	runs := 0
	s := r.serve(r.open(tracing.Config{}), idemhttp.Route{}, func(w http.ResponseWriter, req *http.Request) {
		if runs++; runs == 1 {
			http.Error(w, "later", http.StatusBadGateway)
			return
		}
		order(w, req)
	})
	r.send(s, "k", "a", "req-1")
	r.wantValues(r.one(spanRequest), "idem.outcome", "released", "http.response.status_code", "502")
	r.wantValues(r.one(spanCommit), "idem.outcome", "released")
	r.wantFailed(r.one(spanRequest), true)
	r.wantFailed(r.one(spanHandler), true)
	r.exporter.Reset()
	r.send(s, "k", "a", "req-2")
	r.wantNoLink(r.one(spanRequest))
	r.wantValues(r.one(spanRequest), "idem.outcome", "executed", "idem.first_request.id", "")
}

// A remembered refusal and a key whose handler has committed by itself link as an answer
// does.
func TestRequest_everyMemoryLinks(t *testing.T) {
	for want, do := range map[string]http.HandlerFunc{
		"replayed": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "declined", http.StatusPaymentRequired) },
		"withheld": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 2<<20)) },
		"unknown": func(w http.ResponseWriter, req *http.Request) {
			_, _ = idem.Tx(req.Context()).Exec(req.Context(), "commit")
		},
	} {
		t.Run(want, func(t *testing.T) {
			r := newRig(t)
			s := r.serve(r.open(tracing.Config{}), idemhttp.Route{}, do)
			r.send(s, "k", "a", "req-1")
			first := r.one(spanRequest)
			r.exporter.Reset()
			r.send(s, "k", "a", "req-2")
			r.wantLink(r.one(spanRequest), first)
			r.wantValues(r.one(spanRequest), "idem.outcome", want, "idem.first_request.id", "req-1")
		})
	}
}

// A claim that was left is taken over: from then on it is the successor's.
func TestRequest_takenOverClaimIsTheSuccessors(t *testing.T) {
	r := newRig(t)
	runs := 0
	s := r.serve(r.open(tracing.Config{}), idemhttp.Route{Lease: idemhttp.DefaultLease}, func(w http.ResponseWriter, req *http.Request) {
		charge := idem.Effect{Scope: "shop", Key: "charge:1"}
		_, err := idem.Call(req.Context(), charge, func(context.Context, string) (int, error) { return 1, nil })
		if runs++; err != nil || runs == 1 {
			http.Error(w, "later", http.StatusInternalServerError)
			return
		}
		order(w, req)
	})
	r.send(s, "k", "a", "req-1")
	r.exporter.Reset()
	r.send(s, "k", "a", "req-2")
	second := r.one(spanRequest)
	r.wantValues(second, "idem.outcome", "executed")
	r.exporter.Reset()
	r.send(s, "k", "a", "req-3")
	r.wantLink(r.one(spanRequest), second)
	r.wantValues(r.one(spanRequest), "idem.first_request.id", "req-2")
}

func TestRequest_panicEndsEverySpan(t *testing.T) {
	for name, errors := range map[string]bool{"silent": false, "with errors": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			s := r.serve(r.open(tracing.Config{Errors: errors}), idemhttp.Route{}, func(http.ResponseWriter, *http.Request) {
				panic("the handler's secret")
			})
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, strings.NewReader("a"))
			req.Header.Set("Idempotency-Key", "k")
			if resp, err := s.Client().Do(req); err == nil {
				_ = resp.Body.Close()
				t.Errorf("answered %d", resp.StatusCode)
			}
			r.wantNames(spanRequest, spanClaim, spanHandler, spanCommit)
			handler := r.one(spanHandler)
			r.wantFailed(handler, true)
			r.wantValues(handler, "error.type", "panic")
			r.wantFailed(r.one(spanRequest), true)
			r.wantValues(r.one(spanRequest), "error.type", "panic", "idem.outcome", "released")
			if got := strings.Contains(handler.Status.Description, "the handler's secret"); got != errors {
				t.Errorf("the status is %q", handler.Status.Description)
			}
			if !errors {
				r.wantSilent("secret")
			}
		})
	}
}

// Keys and scopes are there for whoever wants them.
func TestConfig_keysAndScopes(t *testing.T) {
	r := newRig(t)
	s := r.serve(r.open(tracing.Config{Keys: true, Scopes: true}), idemhttp.Route{}, order)
	r.send(s, "k1", "a", "")
	for _, name := range []string{spanRequest, spanClaim, spanHandler, spanCommit} {
		r.wantValues(r.one(name), "idem.key", "k1", "idem.scope", "somebody")
	}
}

// Without a span that is kept, or a request's id, nothing is written.
func TestRequest_withoutATraceNothingIsStored(t *testing.T) {
	r := newRig(t)
	never := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
	for key, route := range map[string]idemhttp.Route{"k1": {}, "k2": {Lease: idemhttp.DefaultLease}} {
		s := r.serve(r.open(tracing.Config{Provider: never}), route, order)
		r.send(s, key, "a", "")
	}
	var rows, written int
	err := r.pool.QueryRow(t.Context(), "select count(*), count(traceparent) + count(request_id) from idem.idempotency_keys").Scan(&rows, &written)
	if err != nil || rows != 2 || written != 0 {
		t.Errorf("%d rows have %d texts (%v), want 2 without any", rows, written, err)
	}
}
