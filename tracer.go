package idem

import (
	"context"

	"github.com/idem-go/idem/internal/downstream"
)

// Step is what a span of a Tracer's is of.
type Step string

// The steps. docs/tracing.md says when each begins and ends.
const (
	StepRequest Step = "request" // a request on a guarded route, from its arrival to its answer
	StepClaim   Step = "claim"   // asking for the key
	StepWait    Step = "wait"    // waiting for whoever has the key
	StepHandler Step = "handler" // one run of the handler, of a request or of a task
	StepCommit  Step = "commit"  // the end of the handler's transaction; of a request also by a rollback
	StepTake    Step = "take"    // a worker's taking of tasks, if there were any
	StepAttempt Step = "attempt" // one attempt at a task
	StepCall    Step = "call"    // one Call of an effect
)

// Tracer makes a span of each step, and carries the trace to where it goes on. Package
// tracing, a module of its own, has one for OpenTelemetry. It must be safe for concurrent
// use and quick, and it must not panic: it runs where the steps do. What it is told never
// holds a body, a token or a stored answer.
type Tracer interface {
	// Begin begins the span of a step within ctx, and returns the context that the step
	// goes on in, and what ends the span: it is called once, with what the step has come
	// to. about is what is known at the beginning: Elapsed, if it is set, says how long ago
	// that was; Origin, the trace context of what has led to it. A span whose process dies
	// is not ended.
	Begin(ctx context.Context, step Step, about Event) (context.Context, func(Event))
	// Traceparent is the trace context of the span that ctx is in, as the header traceparent
	// of https://www.w3.org/TR/trace-context/ has it. It is stored with a key or a task, for
	// whoever goes back to it: at most 128 bytes of visible ASCII. Any other, as empty,
	// stores nothing.
	Traceparent(ctx context.Context) string
	// Inject hands to set the headers that carry the trace of ctx to another system.
	Inject(ctx context.Context, set func(name, value string))
}

// WithTracer returns a context in which queue's Enqueue and idemclient find t. Handlers of
// requests and tasks have it from Config.Tracer; other code that enqueues gives it once,
// for example in http.Server.BaseContext. Safe for concurrent use.
func WithTracer(ctx context.Context, t Tracer) context.Context {
	return downstream.WithTracer(ctx, t)
}

// TracerFrom returns the Tracer that ctx carries, if any. Safe for concurrent use.
func TracerFrom(ctx context.Context) (Tracer, bool) {
	t, ok := downstream.TracerFrom(ctx).(Tracer)
	return t, ok
}

// Trace begins the span of a step, if there is a Config.Tracer; without one it returns ctx
// as it is, and an end that does nothing. It is for the doors.
func (db *DB) Trace(ctx context.Context, step Step, about Event) (context.Context, func(Event)) {
	if db.config.Tracer == nil {
		return ctx, untraced
	}
	return db.config.Tracer.Begin(ctx, step, about)
}

// Tracer is Config.Tracer, or nil. It is for the doors.
func (db *DB) Tracer() Tracer { return db.config.Tracer }

func untraced(Event) {}

// traceCall begins the span of a Call, if ctx carries a Tracer.
func traceCall(ctx context.Context, e Effect) (context.Context, func(Event)) {
	t, ok := TracerFrom(ctx)
	if !ok {
		return ctx, untraced
	}
	return t.Begin(ctx, StepCall, Event{Kind: EventEffect, Scope: e.Scope, Effect: e.Key})
}
