package idemhttp

import (
	"cmp"
	"context"
	"net/http"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/claim"
)

// MaxRequestID is the longest id of a request that is remembered, in bytes.
const MaxRequestID = 128

// headerRequestID is where a request's id is unless Config.RequestID says otherwise.
const headerRequestID = "X-Request-Id"

// HeaderRequestID is the Config.RequestID that nil stands for: the header X-Request-Id, as
// proxies and most middleware set it. Safe for concurrent use.
func HeaderRequestID(r *http.Request) string { return r.Header.Get(headerRequestID) }

// storable is an id that can be stored and written to a log as it is, or nothing: one that
// is cut off finds no request.
func storable(id string) string {
	if len(id) > MaxRequestID {
		return ""
	}
	for i := range len(id) {
		if id[i] < 0x21 || id[i] > 0x7e {
			return ""
		}
	}
	return id
}

// begin begins the request's span. From here on the request's context is in it.
func (x *exchange) begin() {
	x.by.ID = storable(x.config.RequestID(x.r))
	ctx, end := x.trace(x.r.Context(), idem.StepRequest)
	x.ended = end
	if t := x.db.Tracer(); t != nil {
		x.r = x.r.WithContext(idem.WithTracer(ctx, t))
		x.by.Traceparent = storable(t.Traceparent(ctx))
	}
}

// trace begins the span of a step of the request.
func (x *exchange) trace(ctx context.Context, step idem.Step) (context.Context, func(idem.Event)) {
	return x.db.Trace(ctx, step, idem.Event{Route: x.route.Name, Scope: x.scope, Key: x.key, Request: x.by.ID})
}

// end ends the request's span, if it has not ended.
func (x *exchange) end(e idem.Event) {
	if end := x.ended; end != nil {
		x.ended = nil
		end(e)
	}
}

// outcomeOf is how a request ends that ends with e.
func (x *exchange) outcomeOf(e ending) idem.Outcome {
	return cmp.Or(e.outcome, x.problems[e.problem].outcome)
}

// claimed is what asking for a key has come to. Without an outcome the key is this
// request's.
func (x *exchange) claimed(found claim.Outcome, err error) idem.Event {
	switch {
	case err != nil:
		return idem.Event{Outcome: x.outcomeOf(refused(err)), Err: err}
	case found == claim.Fresh:
		return idem.Event{}
	case found == claim.Answered:
		return idem.Event{Outcome: idem.OutcomeReplayed}
	}
	return idem.Event{Outcome: x.problems[codeOf(found)].outcome}
}

// handled is what a run of the handler has come to.
func handled(own *recording, p *panicked) idem.Event {
	if p != nil {
		return idem.Event{Kind: idem.EventPanic, Err: p.err()}
	}
	return idem.Event{Status: own.status}
}
