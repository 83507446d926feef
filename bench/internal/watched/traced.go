package watched

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/tracing"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Traced is Quiet with traces, and their ids in the metrics. A share of them is kept: it
// goes in batches, as the SDK does by default, to a collector that reads it and throws it
// away. It is in this process, so that its time counts, too. What is more than the SDK's
// queue holds is lost, as everywhere.
func Traced(share float64) func() (idem.Config, error) {
	return func() (idem.Config, error) {
		config, err := observed(slog.LevelInfo, tracing.TraceID)
		if err != nil {
			return config, err
		}
		collector, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return config, err
		}
		go func() { _ = http.Serve(collector, http.HandlerFunc(collect)) }() // until the process ends
		exporter, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL("http://"+collector.Addr().String()+"/v1/traces"))
		if err != nil {
			return config, err
		}
		provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter),
			sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(share))))
		config.Tracer = tracing.New(tracing.Config{Provider: provider})
		return config, nil
	}
}

// collect answers an export: an empty answer has accepted everything.
func collect(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // what is cut off is thrown away, too
	w.Header().Set("Content-Type", "application/x-protobuf")
}
