// Package metrics makes Prometheus metrics of Idem's events and of what is in the database.
// docs/watching.md lists them, with the questions that they answer.
//
//	m, err := metrics.New(metrics.Config{Pool: pool})
//	db, err := idem.Open(ctx, pool, idem.Config{Observe: m.Observe})
//	mux.Handle("GET /metrics", promhttp.Handler())
//
// Labels are the names of routes, queues and kinds, and words of closed sets: never a key, a
// scope or a path. Whatever is known beforehand is there at zero: each outcome of each route
// once its guard has made it, each result of each kind once its worker has started.
package metrics

import (
	"context"
	"fmt"
	"sync"

	"github.com/idem-go/idem"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

const (
	// MaxRoutes bounds the routes that have a label of their own; those that come later
	// share the label Other. A route has about 320 lines in a scrape.
	MaxRoutes = 200
	// MaxKinds bounds the kinds of tasks, each in its queue, in the same way. A kind has
	// about 50 lines.
	MaxKinds = 200
	// Other is the label of what is beyond a bound: the queue and the kind, or the route.
	Other = "other"
)

// Config says where metrics are registered and read. The zero value works.
type Config struct {
	// Registerer gets the metrics. Nil means prometheus.DefaultRegisterer.
	Registerer prometheus.Registerer
	// Pool leads to the database whose numbers are read when they are scraped, as a role
	// with the grants of a program: at most every MaxAge, in one round trip. Give it a pool
	// of its own, of one connection, where the program's may have none free for long: then
	// these numbers are missing. Nil does without them. Do not leave them to the workers
	// alone: when all of these are gone, a process that serves or enqueues must be left to
	// tell for how long tasks have waited. Prometheus has to give a scrape more than the
	// 5 s that a reading may take (scrape_timeout), or it gets nothing at all when the
	// database is slow.
	Pool *pgxpool.Pool
	// TraceID is the id of the trace that an event's context belongs to, or empty: it
	// becomes the exemplar trace_id of counters and histograms of requests and tasks, which
	// a scrape shows in the OpenMetrics format. Nil means no exemplars.
	TraceID func(context.Context) string
}

// Metrics are made of the events of one process. It is safe for concurrent use.
type Metrics struct {
	families
	traceID func(context.Context) string

	results map[idem.EffectResult]prometheus.Counter
	tables  map[string]prometheus.Counter

	mu     sync.RWMutex
	routes map[string]*route
	kinds  map[kindName]*kind
}

// kindName is a kind of tasks in its queue.
type kindName struct{ queue, kind string }

// New registers the metrics and returns what counts: give its Observe to idem.Open. The
// error says which metric is registered already; a registry has one Metrics.
func New(c Config) (*Metrics, error) {
	m := &Metrics{families: newFamilies(), traceID: c.TraceID, routes: make(map[string]*route), kinds: make(map[kindName]*kind),
		results: make(map[idem.EffectResult]prometheus.Counter), tables: make(map[string]prometheus.Counter)}
	for _, result := range idem.EffectResults() {
		m.results[result] = m.effects.WithLabelValues(string(result))
	}
	for _, table := range idem.SweptTables() {
		m.tables[table] = m.swept.WithLabelValues(table)
	}
	collectors := m.collectors()
	if c.Pool != nil {
		collectors = append(collectors, newGauges(c.Pool, m.queues))
	}
	registerer := c.Registerer
	if registerer == nil {
		registerer = prometheus.DefaultRegisterer
	}
	if err := registerer.Register(together(collectors)); err != nil {
		return nil, fmt.Errorf("metrics: a registry has the metrics of one Metrics; use that one, or another registry: %w", err)
	}
	return m, nil
}

// Observe counts an event. It is for idem.Config.Observe, by itself or from a function that
// does more; it never blocks on the database.
func (m *Metrics) Observe(ctx context.Context, e idem.Event) {
	switch e.Kind {
	case idem.EventRoute:
		m.route(e.Route)
	case idem.EventHandler:
		m.kind(e.Queue, e.TaskKind)
	case idem.EventStart:
		m.route(e.Route).inFlight.Inc()
	case idem.EventRequest:
		m.route(e.Route).end(e, m.exemplar(ctx))
	case idem.EventTask:
		m.kind(e.Queue, e.TaskKind).end(e, m.exemplar(ctx))
	case idem.EventEffect:
		if counter, known := m.results[e.Result]; known {
			counter.Inc()
		}
	case idem.EventSweep:
		if counter, known := m.tables[e.Table]; known {
			counter.Add(float64(e.Rows))
		}
	}
}

// together are collectors that are registered or refused together.
type together []prometheus.Collector

// Describe implements prometheus.Collector.
func (all together) Describe(to chan<- *prometheus.Desc) {
	for _, collector := range all {
		collector.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (all together) Collect(to chan<- prometheus.Metric) {
	for _, collector := range all {
		collector.Collect(to)
	}
}
