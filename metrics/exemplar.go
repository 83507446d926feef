package metrics

import (
	"context"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
)

// maxTraceID bounds a trace's id: an exemplar's labels have 128 characters at most, of which
// the name takes 8. Those of OpenTelemetry have 32.
const maxTraceID = prometheus.ExemplarMaxRunes - len("trace_id")

// exemplar is the trace of an event, or nil.
func (m *Metrics) exemplar(ctx context.Context) prometheus.Labels {
	if m.traceID == nil {
		return nil
	}
	id := m.traceID(ctx)
	if id == "" || len(id) > maxTraceID || !utf8.ValidString(id) {
		return nil
	}
	return prometheus.Labels{"trace_id": id}
}

func count(c prometheus.Counter, exemplar prometheus.Labels) {
	if with, ok := c.(prometheus.ExemplarAdder); ok && exemplar != nil {
		with.AddWithExemplar(1, exemplar)
		return
	}
	c.Inc()
}

func observe(o prometheus.Observer, v float64, exemplar prometheus.Labels) {
	if with, ok := o.(prometheus.ExemplarObserver); ok && exemplar != nil {
		with.ObserveWithExemplar(v, exemplar)
		return
	}
	o.Observe(v)
}
