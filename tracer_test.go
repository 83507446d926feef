package idem_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgtest"
)

// Without a Tracer no step allocates, nor does what it is told.
func TestTrace_costsNothingWithoutATracer(t *testing.T) {
	db := open(t, pgtest.New(t), idem.Config{})
	ctx := t.Context()
	allocated := testing.AllocsPerRun(100, func() {
		within, end := db.Trace(ctx, idem.StepClaim, idem.Event{Route: "POST /orders", Key: "k"})
		if within != ctx {
			t.Error("the context is another")
		}
		end(idem.Event{Outcome: idem.OutcomeReplayed})
		if _, ok := idem.TracerFrom(ctx); ok || db.Tracer() != nil {
			t.Error("there is a tracer")
		}
	})
	if allocated != 0 {
		t.Errorf("a step allocates %v times, want never", allocated)
	}
}

// named is a Tracer that only has to be found again.
type named struct{ name string }

func (named) Begin(ctx context.Context, _ idem.Step, _ idem.Event) (context.Context, func(idem.Event)) {
	return ctx, func(idem.Event) {}
}
func (n named) Traceparent(context.Context) string                     { return n.name }
func (n named) Inject(_ context.Context, set func(name, value string)) { set("traceparent", n.name) }

func TestWithTracer_isFoundAgain(t *testing.T) {
	ctx := idem.WithTracer(idem.WithTracer(t.Context(), named{"outer"}), named{"inner"})
	if got, ok := idem.TracerFrom(ctx); !ok || got != (named{"inner"}) {
		t.Errorf("got %v, want the inner one", got)
	}
}

func TestLogEvents_namesTheFirstRequest(t *testing.T) {
	var out bytes.Buffer
	idem.LogEvents(slog.New(slog.NewTextHandler(&out, nil)))(t.Context(), idem.Event{Kind: idem.EventRequest,
		Outcome: idem.OutcomeReplayed, Request: "req-2", FirstRequest: "req-1", Origin: "00-trace"})
	for _, want := range []string{" request=req-2 ", " first_request=req-1 "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the line lacks %q: %s", want, out.String())
		}
	}
}
