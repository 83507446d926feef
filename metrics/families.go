package metrics

import "github.com/prometheus/client_golang/prometheus"

// Buckets, in seconds. A replay takes a millisecond or two, a request that waits five
// seconds at most unless its route says otherwise; a task may take minutes, and wait for hours.
// Waits are told apart where it matters whether they end in time: a quantile is anywhere
// between two bounds, and what has waited in vain for the five seconds ends just above them.
var (
	requestBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	waitBuckets    = []float64{.01, .05, .1, .25, .5, 1, 1.5, 2, 3, 4, 5, 5.5, 10, 30}
	taskBuckets    = []float64{.001, .005, .025, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900}
	delayBuckets   = []float64{.005, .025, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200}
	attemptBuckets = []float64{1, 2, 3, 4, 5, 7, 10, 20, 50, 100}
)

// families are the metrics that events make, by what design and docs call them.
type families struct {
	requests       *prometheus.CounterVec
	waitSeconds    *prometheus.HistogramVec
	requestSeconds *prometheus.HistogramVec
	inFlight       *prometheus.GaugeVec
	tasks          *prometheus.CounterVec
	taskAttempts   *prometheus.HistogramVec
	taskSeconds    *prometheus.HistogramVec
	taskDelay      *prometheus.HistogramVec
	effects        *prometheus.CounterVec
	swept          *prometheus.CounterVec
}

func newFamilies() families {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	return families{
		requests:       counter("idem_requests_total", "Requests on guarded routes, by what their clients were told.", "route", "outcome"),
		waitSeconds:    histogram("idem_wait_seconds", "How long requests waited for the first one under their key; only those that waited.", waitBuckets, "route"),
		requestSeconds: histogram("idem_request_seconds", "From a request's arrival to its answer.", requestBuckets, "route", "outcome"),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "idem_in_flight",
			Help: "Requests on guarded routes that have arrived and have no answer yet."}, []string{"route"}),
		tasks:        counter("idem_tasks_total", "Attempts at tasks, by how they ended.", "queue", "kind", "result"),
		taskAttempts: histogram("idem_task_attempts", "How many attempts a task had taken when it was done, failed for good or cancelled.", attemptBuckets, "queue", "kind"),
		taskSeconds:  histogram("idem_task_seconds", "The handler's time in one attempt.", taskBuckets, "queue", "kind"),
		taskDelay:    histogram("idem_task_delay_seconds", "How long a task had been due when it was taken.", delayBuckets, "queue", "kind"),
		effects:      counter("idem_effects_total", "What became of effects; in the transaction, what was attempted.", "result"),
		swept:        counter("idem_swept_total", "Rows that sweeps of this process removed.", "table"),
	}
}

func (f *families) collectors() []prometheus.Collector {
	return []prometheus.Collector{f.requests, f.waitSeconds, f.requestSeconds, f.inFlight,
		f.tasks, f.taskAttempts, f.taskSeconds, f.taskDelay, f.effects, f.swept}
}
