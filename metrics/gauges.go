package metrics

import (
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

const (
	// MaxAge is how old a number of the database may be when it is scraped; it is read at
	// most so often, however many scrape.
	MaxAge = 5 * time.Second
	// readLimit bounds one reading, with the wait for a connection: half of what Prometheus
	// gives a scrape unless it is told otherwise.
	readLimit = 5 * time.Second
	// statementLimit bounds each statement of it, so that what comes before a slow one is
	// told.
	statementLimit = 3 * time.Second
)

// gauges are the numbers of the database. They are read when they are scraped, by one
// scrape for all that come meanwhile. Where they cannot be read there are none: an old
// number would look like a new one.
type gauges struct {
	pool   *pgxpool.Pool
	queues func() []string // those to be told of in any case

	mu     sync.Mutex // held while they are read
	read   time.Time
	seen   numbers
	up     float64 // 1: all of them could be read
	errors float64
}

var _ prometheus.Collector = (*gauges)(nil)

func newGauges(pool *pgxpool.Pool, queues func() []string) *gauges {
	return &gauges{pool: pool, queues: queues}
}

var (
	tasksGauge       = description("idem_tasks", "Tasks that wait (pending), run (running) or have failed for good (failed); at most 10,000 are counted.", "queue", "status")
	dueGauge         = description("idem_oldest_due_task_seconds", "For how long the task that has been due for longest has waited.", "queue")
	unsettledGauge   = description("idem_effects_unsettled", "Effects whose outcome nobody knows and nobody is finding out; at most 10,000 are counted.")
	transactionGauge = description("idem_oldest_transaction_seconds", "For how long the oldest transaction in the database has been open, as far as the role may see.")
	lagGauge         = description("idem_sweep_lag_seconds", "For how long the time of the oldest row has been over that a sweep would remove or strip.", "table")
	upGauge          = description("idem_database_up", "Whether the numbers of the database could be read (1) or are missing (0).")
	errorsCounter    = description("idem_database_errors_total", "How often the numbers of the database could not be read.")
)

func description(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{tasksGauge, dueGauge, unsettledGauge, transactionGauge, lagGauge, upGauge, errorsCounter} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(to chan<- prometheus.Metric) {
	seen, up, failed := g.current()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	to <- prometheus.MustNewConstMetric(errorsCounter, prometheus.CounterValue, failed)
	gauge(upGauge, up)
	for _, b := range seen.backlogs {
		queue := label(b.Queue)
		gauge(tasksGauge, b.Pending, queue, "pending")
		gauge(tasksGauge, b.Running, queue, "running")
		gauge(tasksGauge, b.Failed, queue, "failed")
		gauge(dueGauge, b.Due, queue)
	}
	if seen.unsettled != nil {
		gauge(unsettledGauge, *seen.unsettled)
	}
	if seen.transaction != nil {
		gauge(transactionGauge, *seen.transaction)
	}
	for _, l := range seen.lags {
		gauge(lagGauge, l.Lag, l.Table)
	}
}

// current are the numbers that are not older than MaxAge. The process's clock only measures
// their age.
func (g *gauges) current() (seen numbers, up, failed float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.read.IsZero() || time.Since(g.read) >= MaxAge {
		var err error
		g.up = 1
		if g.seen, err = readNumbers(g.pool, g.queues()); err != nil {
			g.up = 0
			g.errors++
		}
		g.read = time.Now()
	}
	return g.seen, g.up, g.errors
}
