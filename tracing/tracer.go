package tracing

import (
	"context"
	"errors"
	"time"

	"github.com/idem-go/idem"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// scope is the instrumentation scope of the spans.
const scope = "github.com/idem-go/idem/tracing"

// Config says where spans go and what is in them. The zero value works.
type Config struct {
	// Provider makes the tracer. Nil means the global one (otel.GetTracerProvider).
	Provider trace.TracerProvider
	// Propagator carries the trace to other systems, with the requests that idemclient
	// sends. Nil means the W3C trace context and no baggage, which may hold what others
	// must not see.
	Propagator propagation.TextMapPropagator
	// Keys puts the keys of requests, tasks and effects into spans, and Scopes whose they
	// are. Without them a span says only what kind of thing it is of.
	Keys, Scopes bool
	// Errors puts the texts of errors into spans. Idem's own name keys and no bodies; those
	// of handlers, and what they panic with, hold whatever the program writes. Without it
	// a span says only of which kind an error is.
	Errors bool
}

// Tracer is an idem.Tracer for OpenTelemetry. It is made by New and safe for concurrent
// use.
type Tracer struct {
	config Config
	tracer trace.Tracer
}

var _ idem.Tracer = (*Tracer)(nil)

// New returns a tracer for idem.Config.Tracer, and for idem.WithTracer.
func New(config Config) *Tracer {
	if config.Provider == nil {
		config.Provider = otel.GetTracerProvider()
	}
	if config.Propagator == nil {
		config.Propagator = propagation.TraceContext{}
	}
	return &Tracer{config: config, tracer: config.Provider.Tracer(scope)}
}

// Begin begins the span of a step, as idem.Tracer says. A worker's spans begin traces of
// their own, which link to what has led to them.
func (t *Tracer) Begin(ctx context.Context, step idem.Step, about idem.Event) (context.Context, func(idem.Event)) {
	options := []trace.SpanStartOption{trace.WithSpanKind(kindOf(step)), trace.WithAttributes(t.known(step, about)...)}
	if about.Elapsed > 0 {
		options = append(options, trace.WithTimestamp(time.Now().Add(-about.Elapsed)))
	}
	switch step {
	case idem.StepTake:
		options = append(options, trace.WithNewRoot())
	case idem.StepAttempt:
		options = append(options, trace.WithNewRoot())
		if origin := spanContext(about.Origin); origin.IsValid() {
			options = append(options, trace.WithLinks(trace.Link{SpanContext: origin}))
		}
	}
	ctx, span := t.tracer.Start(ctx, nameOf(step, about), options...)
	return ctx, func(e idem.Event) { t.end(span, step, e) }
}

// end ends a span with what its step has come to.
func (t *Tracer) end(span trace.Span, step idem.Step, e idem.Event) {
	defer span.End()
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(t.become(step, e)...)
	if first := spanContext(e.Origin); step == idem.StepRequest && first.IsValid() {
		span.AddLink(trace.Link{SpanContext: first})
	}
	if !failed(step, e) {
		return
	}
	text := ""
	if t.config.Errors && e.Err != nil {
		text = e.Err.Error()
	}
	span.SetStatus(codes.Error, text)
}

// failed reports whether a step has come to what somebody should look at. That the same
// request came again, or was refused, is no failure.
func failed(step idem.Step, e idem.Event) bool {
	switch step {
	case idem.StepRequest, idem.StepClaim, idem.StepWait, idem.StepCommit:
		return e.Status >= 500 || e.Outcome == idem.OutcomeUnknown || e.Outcome == idem.OutcomeLeaseLost ||
			e.Outcome == idem.OutcomeUnavailable || errors.Is(e.Err, idem.ErrPanicked) || step == idem.StepCommit && e.Err != nil
	case idem.StepAttempt:
		return e.TaskResult == idem.TaskFailed || e.TaskResult == idem.TaskRetried || e.TaskResult == idem.TaskLeaseLost
	case idem.StepHandler:
		return e.Status >= 500 || e.Err != nil
	default:
		return e.Err != nil
	}
}
