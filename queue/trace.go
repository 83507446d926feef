package queue

import (
	"context"
	"errors"

	"github.com/idem-go/idem"
)

// trace begins the attempt's span, and returns ctx in it.
func (a *attempt) trace(ctx context.Context) context.Context {
	ctx, a.ended = a.w.db.Trace(ctx, idem.StepAttempt, a.event(idem.EventTask, "", nil))
	if t := a.w.db.Tracer(); t != nil {
		ctx = idem.WithTracer(ctx, t)
	}
	return ctx
}

// handled is what a run of the handler has come to. That it puts the task off, or cancels
// it, is no failure.
func handled(err error) idem.Event {
	switch {
	case errors.As(err, new(*panicked)):
		return idem.Event{Kind: idem.EventPanic, Err: err}
	case errors.As(err, new(*snooze)), errors.Is(err, Cancel):
		return idem.Event{}
	}
	return idem.Event{Err: err}
}

// commit ends the handler's transaction, in a span if there is one to be ended.
func (a *attempt) commit(ctx context.Context) (written bool, err error) {
	if !a.current.tx.begun() {
		return a.current.tx.commit(ctx)
	}
	_, end := a.w.db.Trace(a.ctx, idem.StepCommit, a.event("", "", nil))
	written, err = a.current.tx.commit(ctx)
	end(idem.Event{Err: err})
	return written, err
}
