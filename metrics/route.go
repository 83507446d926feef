package metrics

import (
	"strings"

	"github.com/idem-go/idem"
	"github.com/prometheus/client_golang/prometheus"
)

// route has what one route's events count, so that nothing is looked up by label for each.
type route struct {
	outcomes map[idem.Outcome]outcome
	wait     prometheus.Observer
	inFlight prometheus.Gauge
}

type outcome struct {
	requests prometheus.Counter
	seconds  prometheus.Observer
}

// route is that of a name, made at zero if it is new.
func (m *Metrics) route(name string) *route {
	m.mu.RLock()
	r := m.routes[name]
	m.mu.RUnlock()
	if r != nil {
		return r
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if r = m.routes[name]; r != nil {
		return r
	}
	if len(m.routes) >= MaxRoutes && name != Other {
		if m.routes[Other] == nil {
			m.routes[Other] = m.newRoute(Other)
		}
		return m.routes[Other]
	}
	r = m.newRoute(name)
	m.routes[name] = r
	return r
}

func (m *Metrics) newRoute(name string) *route {
	name = label(name)
	r := &route{outcomes: make(map[idem.Outcome]outcome), wait: m.waitSeconds.WithLabelValues(name), inFlight: m.inFlight.WithLabelValues(name)}
	for _, o := range idem.Outcomes() {
		r.outcomes[o] = outcome{m.requests.WithLabelValues(name, string(o)), m.requestSeconds.WithLabelValues(name, string(o))}
	}
	return r
}

// end counts the end of a request.
func (r *route) end(e idem.Event, exemplar prometheus.Labels) {
	r.inFlight.Dec()
	o, known := r.outcomes[e.Outcome]
	if !known {
		return // the set is closed
	}
	count(o.requests, exemplar)
	observe(o.seconds, e.Elapsed.Seconds(), exemplar)
	if e.Waited > 0 {
		observe(r.wait, e.Waited.Seconds(), exemplar)
	}
}

// label is a name that Prometheus takes: its own, or what is left of it.
func label(name string) string { return strings.ToValidUTF8(name, "?") }
