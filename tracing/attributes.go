package tracing

import (
	"strconv"

	"github.com/idem-go/idem"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// nameOf is a span's name: the step, and the route or the queue, of which there are few.
func nameOf(step idem.Step, about idem.Event) string {
	switch {
	case about.Route != "":
		return string(step) + " " + about.Route
	case about.Queue != "":
		return string(step) + " " + about.Queue
	default:
		return string(step)
	}
}

// kindOf is a span's kind. Those of tasks are the messaging conventions'; a request is
// internal, since the server's span is its parent.
func kindOf(step idem.Step) trace.SpanKind {
	switch step {
	case idem.StepTake, idem.StepCall:
		return trace.SpanKindClient
	case idem.StepAttempt:
		return trace.SpanKindConsumer
	default:
		return trace.SpanKindInternal
	}
}

// known are the attributes that a span begins with, where a sampler sees them.
func (t *Tracer) known(step idem.Step, about idem.Event) []attribute.KeyValue {
	a := make(attributes, 0, 8)
	a.text("idem.route", about.Route)
	a.text("idem.request.id", about.Request)
	t.names(&a, about)
	switch step {
	case idem.StepTake:
		a.messaging(about, "take", "receive")
	case idem.StepAttempt:
		a.messaging(about, "attempt", "process")
	}
	if about.TaskID != 0 {
		a.text("idem.task.kind", about.TaskKind)
		a.number("idem.task.attempt", about.Attempt)
	}
	return a
}

// become are the attributes that a span ends with.
func (t *Tracer) become(step idem.Step, e idem.Event) []attribute.KeyValue {
	a := make(attributes, 0, 8)
	if step == idem.StepRequest {
		t.names(&a, e) // which are not known at its beginning
		a.text("idem.first_request.id", e.FirstRequest)
	}
	a.text("idem.outcome", string(e.Outcome))
	a.text("idem.effect.result", string(e.Result))
	a.number("http.response.status_code", e.Status)
	a.text("error.type", errorType(e))
	switch step {
	case idem.StepTake:
		a.number("messaging.batch.message_count", int(e.Rows))
	case idem.StepAttempt:
		a.text("idem.task.result", string(e.TaskResult))
		a = append(a, attribute.Float64("idem.task.delay", e.Delay.Seconds()))
	}
	return a
}

// names are the keys, and whose they are, as far as Config says so.
func (t *Tracer) names(a *attributes, e idem.Event) {
	if t.config.Keys {
		a.text("idem.key", e.Key)
		a.text("idem.effect.key", e.Effect)
	}
	if t.config.Scopes {
		a.text("idem.scope", e.Scope)
	}
}

// attributes are those of one span. What is empty or zero is left out.
type attributes []attribute.KeyValue

func (a *attributes) text(key, value string) {
	if value != "" {
		*a = append(*a, attribute.String(key, value))
	}
}

func (a *attributes) number(key string, value int) {
	if value != 0 {
		*a = append(*a, attribute.Int(key, value))
	}
}

// messaging are the attributes of OpenTelemetry's conventions for messaging.
func (a *attributes) messaging(about idem.Event, name, kind string) {
	a.text("messaging.system", "idem")
	a.text("messaging.destination.name", about.Queue)
	a.text("messaging.operation.name", name)
	a.text("messaging.operation.type", kind)
	if about.TaskID != 0 {
		a.text("messaging.message.id", strconv.FormatInt(about.TaskID, 10))
	}
}
