package downstream

import "context"

// Tracer adds to a request what carries its trace.
type Tracer interface {
	Inject(ctx context.Context, set func(name, value string))
}

type tracerKey struct{}

// WithTracer returns a context whose requests carry the trace that t tells.
func WithTracer(ctx context.Context, t Tracer) context.Context {
	return context.WithValue(ctx, tracerKey{}, t)
}

// TracerFrom returns what ctx was given by WithTracer, or nil.
func TracerFrom(ctx context.Context) Tracer {
	t, _ := ctx.Value(tracerKey{}).(Tracer)
	return t
}
