package tracing

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// traceparent is the header of the W3C trace context.
const traceparent = "traceparent"

// Traceparent is the trace context of the span that ctx is in, if that is sampled: to one
// that is not kept there is nothing to link.
func (t *Tracer) Traceparent(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[traceparent]
}

// TraceID is the id of the trace that ctx is in, in hexadecimal, if that is sampled, and
// empty otherwise: for the exemplars of metrics, and for logs. In the context of an event
// (idem.Config.Observe) it is the request's, or the attempt's. Safe for concurrent use.
func TraceID(ctx context.Context) string {
	if c := trace.SpanContextFromContext(ctx); c.IsSampled() {
		return c.TraceID().String()
	}
	return ""
}

// Inject hands on the headers of Config.Propagator.
func (t *Tracer) Inject(ctx context.Context, set func(name, value string)) {
	t.config.Propagator.Inject(ctx, setter(set))
}

// setter is a carrier that is only written.
type setter func(name, value string)

func (s setter) Set(name, value string) { s(name, value) }
func (setter) Get(string) string        { return "" }
func (setter) Keys() []string           { return nil }

// spanContext is what a stored trace context says; not valid if it is none, as text that
// another program has written may be.
func spanContext(stored string) trace.SpanContext {
	if stored == "" {
		return trace.SpanContext{}
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{traceparent: stored})
	return trace.SpanContextFromContext(ctx)
}
