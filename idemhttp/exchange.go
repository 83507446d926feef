package idemhttp

import (
	"context"
	"net/http"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/claim"
)

// exchange is one request on a guarded route and what is known of it so far.
type exchange struct {
	*guarded
	w       http.ResponseWriter
	r       *http.Request
	arrived time.Time
	waited  time.Duration

	scope  string
	key    string
	body   *body
	flight *flight // that the request waits for, or got its end from
	hold   *hold   // of the answer
	prints *fingerprints
	by     claim.Request    // the request itself, as others find it
	ended  func(idem.Event) // ends its span

	told    bool         // EventRequest was raised
	outcome idem.Outcome // of it, if a function of the program's panics now
}

func newExchange(g *guarded, w http.ResponseWriter, r *http.Request) *exchange {
	return &exchange{guarded: g, w: w, r: r, arrived: time.Now(), outcome: idem.OutcomeReleased}
}

// serve checks scope, media type, key and body, in this order and before any
// database work, and then leads the key's flight or waits for it.
func (x *exchange) serve() ending {
	if e, refused := x.authorize(); refused {
		return e
	}
	if streams(x.mediaType()) {
		return failed(codeMediaType, nil)
	}
	guardedByKey, e, refused := x.readKey()
	if refused {
		return e
	}
	if e, refused := x.readBody(); refused {
		return e
	}
	if !guardedByKey {
		return x.runUnguarded()
	}
	if e, refused := x.fingerprint(); refused {
		return e
	}
	return x.join()
}

// authorize asks the scope function. It runs every time, also before a replay.
func (x *exchange) authorize() (e ending, refused bool) {
	scope, err := x.config.Scope(x.r)
	switch {
	case err != nil && temporary(err):
		return failed(codeUnavailable, err), true
	case err != nil:
		return failed(codeUnauthenticated, err), true
	}
	if err := idem.ValidScope(scope); err != nil {
		return failed(codeNotApplied, err), true // a fault of the program's, never a shared scope
	}
	x.scope = scope
	return ending{}, false
}

// join leads the flight of the key, or waits for the one that does. A flight
// that ended without having the key, or that was of another request and never
// ran, is joined anew while there is time.
func (x *exchange) join() ending {
	x.outcome = idem.OutcomeUnavailable
	deadline := time.NewTimer(x.route.Wait)
	defer deadline.Stop()
	for {
		f, role := x.flights.join(x.scope, x.key, x.prints.current)
		switch role {
		case leading:
			return x.lead(f)
		case crowded:
			return failed(codeInFlight, nil)
		}
		_, waited := x.trace(x.r.Context(), idem.StepWait)
		began := time.Now()
		e, again := x.wait(f, role, deadline.C)
		waited(idem.Event{Outcome: x.outcomeOf(e)})
		if e.problem != codeMismatch { // which is told without waiting for an answer
			x.waited += elapsedSince(began)
		}
		if !again {
			return e
		}
	}
}

// wait waits for a flight without holding a database connection. One that differs
// from a flight that itself waits for another process asks what that works on.
func (x *exchange) wait(f *flight, role role, deadline <-chan time.Time) (e ending, again bool) {
	x.flight = f
	started, away := f.started, f.away
	if role == waiting {
		started, away = nil, nil // it is the same request: only its end matters
	}
	for landed := false; !landed; {
		select {
		case <-f.done:
			landed = true
		case <-started:
			return failed(codeMismatch, nil).of(f.by), false
		case <-away:
			if e, told := x.rival(); told {
				return e, false
			}
			away = nil // it is asked once: a mismatch is told early or in the end
		case <-deadline:
			return failed(codeInFlight, nil), false
		case <-x.r.Context().Done():
			return failed(codeInFlight, nil), false // nobody reads this answer
		}
	}
	if role == differing || f.end.elsewhere {
		x.leave()
		return ending{}, true
	}
	return f.end.shared(x.route.MaxStored), false
}

// rival asks, while there is time, whether the process that works on the key works
// on another request.
func (x *exchange) rival() (e ending, told bool) {
	ctx, done := context.WithDeadline(x.r.Context(), x.arrived.Add(x.route.Wait))
	defer done()
	other, told := claim.Rival(ctx, x.db.Pool(), x.intent())
	if !told {
		return ending{}, false
	}
	return x.account(found(other)), true
}

// request is the request as the handler gets it: whole, with a body of its own
// and a context that outlives the client.
func (x *exchange) request(ctx context.Context) *http.Request {
	r := x.r.Clone(ctx)
	r.Body = x.body.reader()
	r.ContentLength = int64(len(x.body.bytes))
	r.TransferEncoding = nil
	return r
}

// leave ends the part in a flight that another request leads.
func (x *exchange) leave() {
	if x.flight != nil {
		x.flights.leave(x.flight)
		x.flight = nil
	}
}

func (x *exchange) release() {
	x.end(idem.Event{}) // of one that panicked outside its handler
	x.leave()
	x.hold.release()
	if x.body != nil {
		x.body.release()
	}
}
