package tracing_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/tracing"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// The same request twice: the second one's span links to the first one's.
func ExampleNew() {
	ctx := context.Background()
	pool, done := pgtest.ForExample() // your *pgxpool.Pool
	defer done()
	spans := tracetest.NewInMemoryExporter() // your exporter
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	db, err := idem.Open(ctx, pool, idem.Config{Tracer: tracing.New(tracing.Config{Provider: provider})})
	if err != nil {
		fmt.Println(err)
		return
	}
	guard, err := idemhttp.New(db, idemhttp.Config{Scope: idemhttp.Public()})
	if err != nil {
		fmt.Println(err)
		return
	}
	orders := guard.Route(idemhttp.Route{Name: "POST /orders"})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
	}))
	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader("{}"))
		r.Header.Set("Idempotency-Key", "k1")
		orders.ServeHTTP(httptest.NewRecorder(), r)
	}
	var first tracetest.SpanStub
	for _, s := range spans.GetSpans() {
		outcome := value(s, "idem.outcome")
		fmt.Println(strings.TrimSpace(s.Name + " " + outcome))
		switch {
		case outcome == "executed":
			first = s // the last one of them is the request's
		case len(s.Links) == 1:
			fmt.Println("links to the first:", s.Links[0].SpanContext.SpanID() == first.SpanContext.SpanID())
		}
	}
	// Output:
	// claim POST /orders
	// handler POST /orders
	// commit POST /orders executed
	// request POST /orders executed
	// claim POST /orders replayed
	// request POST /orders replayed
	// links to the first: true
}
