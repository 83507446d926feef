package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemclient"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/queue"
	"github.com/idem-go/idem/tracing"
	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

var job = queue.Define[int]("job", queue.Options{Backoff: time.Millisecond})

const (
	spanTake        = "take default"
	spanAttempt     = "attempt default"
	spanTaskHandler = "handler default"
	spanTaskCommit  = "commit default"
)

// work runs a worker until so many attempts have ended, and then to its own end.
func (r *rig) work(db *idem.DB, attempts int, handle func(*queue.Worker)) {
	r.t.Helper()
	worker := queue.NewWorker(db, queue.Config{Poll: 10 * time.Millisecond, PollOnly: true})
	handle(worker)
	ctx, stop := context.WithCancel(r.t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	r.until(func() bool { return len(r.spans(spanAttempt)) >= attempts })
	stop()
	if err := <-ended; err != nil {
		r.t.Error(err)
	}
}

// A task that a request has enqueued in its transaction is worked on in a trace of its own,
// which links to the request's.
func TestTask_attemptLinksToWhatHasEnqueuedIt(t *testing.T) {
	r := newRig(t)
	db := r.open(tracing.Config{})
	s := r.serve(db, idemhttp.Route{}, func(w http.ResponseWriter, req *http.Request) {
		if _, err := job.Enqueue(req.Context(), idem.Tx(req.Context()), "order:1", 17); err != nil {
			t.Error(err)
		}
		order(w, req)
	})
	r.send(s, "k", "a", "")
	handler := r.one(spanHandler)
	r.exporter.Reset()
	var inside trace.SpanContext
	r.work(db, 1, func(w *queue.Worker) {
		job.Handle(w, func(ctx context.Context, tx pgx.Tx, _ int) error {
			inside = trace.SpanContextFromContext(ctx)
			_, err := tx.Exec(ctx, "insert into orders default values")
			return err
		})
	})
	r.wantNames(spanTake, spanAttempt, spanTaskHandler, spanTaskCommit)
	attempt := r.one(spanAttempt)
	r.wantLink(attempt, handler)
	if attempt.SpanContext.TraceID() == handler.SpanContext.TraceID() || attempt.Parent.IsValid() {
		t.Error("the attempt is not in a trace of its own")
	}
	r.wantChild(r.one(spanTaskHandler), attempt)
	r.wantChild(r.one(spanTaskCommit), attempt)
	if inside.SpanID() != r.one(spanTaskHandler).SpanContext.SpanID() {
		t.Error("the handler's context is not in its span")
	}
	if attempt.SpanKind != trace.SpanKindConsumer || r.one(spanTake).SpanKind != trace.SpanKindClient {
		t.Errorf("the kinds are %v and %v", attempt.SpanKind, r.one(spanTake).SpanKind)
	}
	r.wantValues(attempt, "messaging.system", "idem", "messaging.destination.name", "default", "messaging.operation.type", "process",
		"messaging.message.id", "1", "idem.task.kind", "job", "idem.task.attempt", "1", "idem.task.result", "done")
	r.wantValues(r.one(spanTake), "messaging.operation.type", "receive", "messaging.batch.message_count", "1")
	r.wantFailed(attempt, false)
	r.wantSilent("order:1")
}

// What enqueues outside of a guarded handler has the tracer in its context; a task that is
// enqueued without one, or rolled back with its transaction, links to nothing.
func TestTask_enqueuedElsewhere(t *testing.T) {
	r := newRig(t)
	tracer := tracing.New(tracing.Config{Provider: r.provider})
	ctx, span := r.provider.Tracer("test").Start(idem.WithTracer(t.Context(), tracer), "batch")
	for key, fail := range map[string]error{"kept": nil, "dropped": errors.New("rolled back")} {
		err := pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
			_, err := job.Enqueue(ctx, tx, key, 1)
			return errors.Join(err, fail)
		})
		if !errors.Is(err, fail) {
			t.Fatal(err)
		}
	}
	span.End()
	if _, err := job.Enqueue(t.Context(), r.pool, "untraced", 1); err != nil {
		t.Fatal(err)
	}
	// Another language may write it, and may write it wrongly.
	r.exec(`insert into idem.tasks (kind, payload, traceparent) values ('job', '1', 'no trace context')`)
	batch := r.one("batch")
	r.exporter.Reset()
	r.work(r.open(tracing.Config{Keys: true}), 3, func(w *queue.Worker) {
		job.Handle(w, func(context.Context, pgx.Tx, int) error { return nil })
	})
	if n := len(r.spans(spanAttempt)); n != 3 {
		t.Errorf("there are %d attempts, want 3", n)
	}
	for _, attempt := range r.spans(spanAttempt) {
		if value(attempt, "idem.key") == "kept" {
			r.wantLink(attempt, batch)
		} else {
			r.wantNoLink(attempt)
		}
	}
}

// Every attempt links to the same; what it has come to is in its span.
func TestTask_errors(t *testing.T) {
	r := newRig(t)
	tracer := tracing.New(tracing.Config{Provider: r.provider})
	ctx, span := r.provider.Tracer("test").Start(idem.WithTracer(t.Context(), tracer), "batch")
	if _, err := job.Enqueue(ctx, r.pool, "k", 1); err != nil {
		t.Fatal(err)
	}
	span.End()
	batch := r.one("batch")
	r.exporter.Reset()
	runs := 0
	r.work(r.open(tracing.Config{}), 3, func(w *queue.Worker) {
		job.Handle(w, func(context.Context, pgx.Tx, int) error {
			switch runs++; runs {
			case 1:
				return errors.New("a secret")
			case 2:
				panic("a secret")
			default:
				return queue.Fail(errors.New("a secret"))
			}
		})
	})
	attempts := r.spans(spanAttempt)
	if len(attempts) != 3 {
		t.Fatalf("there are %d attempts, want 3", len(attempts))
	}
	for i, want := range []struct{ result, kind string }{{"retried", "other"}, {"retried", "panic"}, {"failed", "other"}} {
		r.wantLink(attempts[i], batch)
		r.wantFailed(attempts[i], true)
		r.wantValues(attempts[i], "idem.task.attempt", fmt.Sprint(i+1), "idem.task.result", want.result, "error.type", want.kind)
		r.wantValues(r.spans(spanTaskHandler)[i], "error.type", want.kind)
	}
	r.wantSilent("secret")
}

// bankServer answers with what it was told of the trace.
func bankServer(t *testing.T, told *[]string) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		*told = append(*told, req.Header.Get("traceparent"))
		if len(*told) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable) // the client asks again
			return
		}
		_, _ = io.WriteString(w, `"receipt"`)
	}))
	t.Cleanup(s.Close)
	return s
}

// charge charges at a bank through idemclient.
func charge(ctx context.Context, bank *httptest.Server) (string, error) {
	transport, err := idemclient.New(idemclient.Config{MinWait: time.Millisecond})
	if err != nil {
		return "", err
	}
	defer transport.CloseIdleConnections()
	effect := idem.Effect{Scope: "shop", Key: "charge:order:17", Provider: idem.Keyed(time.Hour)}
	return idem.Call(ctx, effect, func(ctx context.Context, _ string) (string, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, bank.URL, strings.NewReader("a card"))
		if err != nil {
			return "", idem.NotApplied(err)
		}
		resp, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			return "", err
		}
		defer func() { _ = resp.Body.Close() }()
		b, err := io.ReadAll(resp.Body)
		return string(b), err
	})
}

// header is the traceparent of a span.
func header(s tracetest.SpanStub) string {
	return fmt.Sprintf("00-%s-%s-01", s.SpanContext.TraceID(), s.SpanContext.SpanID())
}

// The bank that a task on a lease calls is told of the call's span, in every attempt at it.
func TestCall_carriesTheTraceOn(t *testing.T) {
	r := newRig(t)
	var told []string
	bank := bankServer(t, &told)
	if _, err := job.Enqueue(t.Context(), r.pool, "k", 1); err != nil {
		t.Fatal(err)
	}
	r.work(r.open(tracing.Config{}), 1, func(w *queue.Worker) {
		job.HandleLeased(w, func(ctx context.Context, _ int) error {
			if _, err := charge(ctx, bank); err != nil {
				return err
			}
			_, err := charge(ctx, bank) // which is skipped
			return err
		})
	})
	calls := r.spans("call")
	if len(calls) != 2 || len(told) != 2 {
		t.Fatalf("there are %d calls and %d requests, want 2 and 2: %q", len(calls), len(told), r.names())
	}
	for _, got := range told {
		if got != header(calls[0]) {
			t.Errorf("the bank was told %q, want the call's span, %q", got, header(calls[0]))
		}
	}
	r.wantChild(calls[0], r.one(spanTaskHandler))
	r.wantValues(calls[0], "idem.effect.result", "applied", "idem.effect.key", "")
	r.wantValues(calls[1], "idem.effect.result", "skipped")
	r.wantFailed(calls[0], false)
	r.wantSilent("charge:order:17", "a card", "receipt")
}

// The same from a request, whose own trace goes on.
func TestCall_ofARequestIsInItsTrace(t *testing.T) {
	r := newRig(t)
	var told []string
	bank := bankServer(t, &told)
	s := r.serve(r.open(tracing.Config{}), idemhttp.Route{Lease: idemhttp.DefaultLease}, func(w http.ResponseWriter, req *http.Request) {
		if _, err := charge(req.Context(), bank); err != nil {
			t.Error(err)
		}
		order(w, req)
	})
	if got := r.send(s, "k", "a", ""); got != 201 {
		t.Fatalf("answered %d", got)
	}
	call := r.one("call")
	r.wantChild(call, r.one(spanHandler))
	r.wantChild(r.one(spanHandler), r.one(spanRequest))
	if len(told) != 2 || told[1] != header(call) {
		t.Errorf("the bank was told %q, want %q", told, header(call))
	}
}

// An outcome that nobody knows is told by the span of the call, and by the request's.
func TestCall_unknown(t *testing.T) {
	r := newRig(t)
	s := r.serve(r.open(tracing.Config{}), idemhttp.Route{Lease: idemhttp.DefaultLease}, func(w http.ResponseWriter, req *http.Request) {
		_, err := idem.Call(req.Context(), idem.Effect{Scope: "shop", Key: "charge:1"}, func(context.Context, string) (int, error) {
			return 0, errors.New("the reply was lost, and a secret with it")
		})
		if err == nil {
			t.Error("the call has an outcome")
		}
		order(w, req)
	})
	r.send(s, "k", "a", "")
	r.wantValues(r.one("call"), "idem.effect.result", "unknown", "error.type", "outcome_unknown")
	r.wantValues(r.one(spanCommit), "idem.outcome", "unknown", "error.type", "outcome_unknown")
	r.wantValues(r.one(spanRequest), "idem.outcome", "unknown", "error.type", "outcome_unknown")
	for _, name := range []string{"call", spanCommit, spanRequest} {
		r.wantFailed(r.one(name), true)
	}
	r.wantSilent("secret", "charge:1")
}

// An event is told in the trace that it belongs to, for exemplars.
func TestTraceID_ofAnEvent(t *testing.T) {
	r := newRig(t)
	db := r.open(tracing.Config{})
	s := r.serve(db, idemhttp.Route{}, func(w http.ResponseWriter, req *http.Request) {
		if _, err := job.Enqueue(req.Context(), idem.Tx(req.Context()), "k", 17); err != nil {
			t.Error(err)
		}
		order(w, req)
	})
	r.send(s, "k", "a", "")
	r.work(db, 1, func(w *queue.Worker) {
		job.Handle(w, func(context.Context, pgx.Tx, int) error { return nil })
	})
	want := map[idem.EventKind]string{
		idem.EventRequest: r.one(spanRequest).SpanContext.TraceID().String(),
		idem.EventTask:    r.one(spanAttempt).SpanContext.TraceID().String(),
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	told := 0
	for i, e := range r.events {
		if trace, is := want[e.Kind]; is {
			told++
			if r.traces[i] != trace {
				t.Errorf("%s is told in the trace %q, want %q", e.Kind, r.traces[i], trace)
			}
		}
	}
	if told != 2 || tracing.TraceID(t.Context()) != "" {
		t.Errorf("%d events were told, want 2", told)
	}
}
