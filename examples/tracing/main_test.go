package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem/internal/pgtest"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// send sends an order as a client that has a trace of its own.
func send(t *testing.T, url, traceparent string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/orders", strings.NewReader(`{"amount":1500}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", "k1")
	req.Header.Set("traceparent", traceparent)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		t.Fatalf("answered %d", resp.StatusCode)
	}
}

func TestRun_replayAndReceiptLinkToTheFirst(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)))
	otel.SetTextMapPropagator(propagation.TraceContext{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + listener.Addr().String()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	database := pgtest.NewURL(t)
	go func() { ended <- run(ctx, database, listener) }()
	const first, second = "0af7651916cd43dd8448eb211c80319c", "4bf92f3577b34da6a3ce929d0e0e4736"
	send(t, url, "00-"+first+"-b7ad6b7169203331-01")
	send(t, url, "00-"+second+"-00f067aa0ba902b7-01")
	linked := map[string]string{} // by name, the trace that a span outside the first one links to
	deadline := time.After(20 * time.Second)
	for linked["request POST /orders"] != first || linked["attempt default"] != first {
		select {
		case err := <-ended:
			t.Fatalf("run ended: %v", err)
		case <-deadline:
			t.Fatalf("the links are %v, want both to the first trace", linked)
		case <-time.After(5 * time.Millisecond):
		}
		for _, s := range spans.GetSpans() {
			if s.SpanContext.TraceID().String() != first && len(s.Links) == 1 {
				linked[s.Name] = s.Links[0].SpanContext.TraceID().String()
			}
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestDocs_showThisProgram(t *testing.T) {
	page, err := os.ReadFile("../../docs/tracing.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```go\n"+string(program)+"```\n") {
		t.Error("docs/tracing.md does not show examples/tracing/main.go as it is")
	}
}
