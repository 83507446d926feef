package idemhttp

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/idem-go/idem"
)

// answer tells the client how its request ended and raises the event.
func (x *exchange) answer(e ending) {
	if e.answer != nil && e.own == nil {
		if refused, ok := x.recheck(e.answer); ok {
			e = refused.of(e.by)
		}
	}
	if e.unguarded {
		h := x.w.Header()
		if e.own != nil {
			h = e.own.header // which replaces what is set on the writer
		}
		h.Set(headerStatus, "unguarded")
	}
	status := 0
	x.outcome = x.outcomeOf(e) // also of one whose answer is not written to its end
	switch {
	case e.panicked != nil:
		x.rethrow(e)
	case e.problem != "":
		status = x.tell(e)
	case e.own != nil:
		status = e.own.status
		e.own.write(x.w)
	default:
		status = x.replay(e)
	}
	x.done(e, status)
}

// recheck asks the route, for one who did not run the handler, whether this
// caller may have this answer.
func (x *exchange) recheck(a *idem.Answer) (e ending, refused bool) {
	if x.route.ReplayCheck == nil {
		return ending{}, false
	}
	r := x.request(x.r.Context())
	x.outcome = idem.OutcomeReleased // if the check panics
	switch err := x.route.ReplayCheck(r, *a); {
	case err == nil:
		return ending{}, false
	case temporary(err):
		return failed(codeUnavailable, err), true
	default:
		return failed(codeReplayRefused, err), true
	}
}

// tell writes a problem.
func (x *exchange) tell(e ending) int {
	p, ok := x.problems[e.problem]
	if !ok {
		panic("idemhttp: a problem that is not in the table: " + e.problem)
	}
	if e.detail != "" {
		p.Detail = e.detail
	}
	p.SafeNewKey = p.SafeNewKey && !e.unsafe
	if e.unguarded && e.problem == codeUnknown {
		p.Retryable = false
		p.Detail = "Whether this request took effect has to be found out by the operator. It had no key, so a repeat would be another request."
	}
	if e.problem == codeInFlight && x.route.InFlight202 {
		p.Status = http.StatusAccepted
	}
	p.write(x.w)
	return p.Status
}

// replay writes an answer that this request did not make itself, and returns its status,
// which is Fetch's own if it writes one.
func (x *exchange) replay(e ending) int {
	a := e.answer
	h := x.w.Header()
	writeFields(h, a.Header)
	if e.remembered {
		h.Set(headerReplayed, "true")
	}
	if a.Reference != "" {
		w := &fetchWriter{ResponseWriter: x.w, status: a.Status}
		x.route.Fetch(w, x.request(x.r.Context()), a.Reference)
		w.finish()
		return w.status
	}
	if _, set := h["Content-Type"]; !set && len(a.Body) > 0 {
		h["Content-Type"] = nil // the first answer had none either
	}
	x.w.WriteHeader(a.Status)
	if len(a.Body) > 0 {
		_, _ = x.w.Write(a.Body) // the client may be gone; its retry gets the same
	}
	return a.Status
}

// fetchWriter answers the stored status unless Fetch writes one, and keeps which it was.
type fetchWriter struct {
	http.ResponseWriter
	status int
	wrote  bool
}

func (w *fetchWriter) WriteHeader(status int) {
	if !w.wrote && status >= 200 { // the first that is final counts, as for net/http
		w.wrote, w.status = true, status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *fetchWriter) Write(p []byte) (int, error) {
	w.finish()
	return w.ResponseWriter.Write(p)
}

func (w *fetchWriter) finish() {
	if !w.wrote {
		w.WriteHeader(w.status)
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (w *fetchWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// rethrow passes a handler's panic on to the program's own recoverer.
func (x *exchange) rethrow(e ending) {
	p := e.panicked
	e.err = errors.Join(idem.ErrPanicked, e.err)
	x.done(e, 0)
	if p.exited {
		panic(http.ErrAbortHandler) // the handler's goroutine ended without an answer
	}
	if p.value != http.ErrAbortHandler {
		x.observe(idem.Event{Kind: idem.EventPanic, Outcome: x.outcome, Err: p.err()})
	}
	panic(p.value)
}

var errFell = fmt.Errorf("%w around its handler: in its scope function, a check of a replay or of a key, a Fetch, or the writer of the answer", idem.ErrPanicked)

// fell ends a request that a panic has ended elsewhere than in its handler: before the
// key was claimed nothing is remembered of it, later its client knows nothing.
func (x *exchange) fell() {
	if !x.told {
		x.done(ending{outcome: x.outcome, err: errFell}, 0)
		x.observe(idem.Event{Kind: idem.EventPanic, Outcome: x.outcome, Err: errFell})
	}
}

func (x *exchange) done(e ending, status int) {
	x.told = true
	event := x.event(idem.Event{Kind: idem.EventRequest, Outcome: x.outcomeOf(e), Status: status, Elapsed: elapsedSince(x.arrived), Waited: x.waited, Err: e.err})
	if e.others {
		event.FirstRequest, event.Origin = e.by.ID, e.by.Traceparent
	}
	x.db.Observe(x.r.Context(), event)
	x.end(event)
}

func (x *exchange) observe(e idem.Event) { x.db.Observe(x.r.Context(), x.event(e)) }

// event is e with what is known of the request.
func (x *exchange) event(e idem.Event) idem.Event {
	e.Route, e.Scope, e.Key, e.Request = x.route.Name, x.scope, x.key, x.by.ID
	return e
}
