// Package tracing makes OpenTelemetry spans of what Idem does:
//
//	db, err := idem.Open(ctx, pool, idem.Config{Tracer: tracing.New(tracing.Config{})})
//
// The span of a replay links to that of the request that made the answer, whenever and in
// whatever process that was; the span of a task's attempt links to what has enqueued it; and
// a request that idemclient sends from within an idem.Call carries the trace on.
//
// Names, attributes and links are listed in docs/tracing.md. It is a module of its own, so
// that a program without OpenTelemetry does not depend on it.
package tracing
