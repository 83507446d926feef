package tracing

import (
	"context"
	"errors"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/queue"
)

// errorTypes are the values of the attribute error.type, which are few and hold nothing
// of an error's text. The first that fits counts.
var errorTypes = []struct {
	is   error
	name string
}{
	{idem.ErrPanicked, "panic"},
	{idem.ErrLeaseLost, "lease_lost"},
	{idem.ErrOutcomeUnknown, "outcome_unknown"},
	{idem.ErrMismatch, "mismatch"},
	{idem.ErrInFlight, "in_flight"},
	{idem.ErrAnswered, "answered"},
	{queue.ErrTimeout, "timeout"},
	{queue.ErrCancelled, "cancelled"},
	{queue.Cancel, "cancelled"},
	{queue.ErrDraining, "draining"},
	{context.DeadlineExceeded, "timeout"},
	{context.Canceled, "cancelled"},
	{idem.ErrUnavailable, "unavailable"},
}

// errorType is the kind of the error that a step has ended with; empty if there is none.
func errorType(e idem.Event) string {
	if e.Err == nil {
		return ""
	}
	for _, known := range errorTypes {
		if errors.Is(e.Err, known.is) {
			return known.name
		}
	}
	return "other"
}
