package main

import (
	"net/http"

	"github.com/idem-go/idem/metrics"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// demoMetrics count the events of the shop on --listen and of the storm's, which are
// processes of their own and tell this one.
type demoMetrics struct {
	*metrics.Metrics
	handler http.Handler // of /metrics
}

func newDemoMetrics(pool *pgxpool.Pool) (*demoMetrics, error) {
	registry := prometheus.NewRegistry()
	m, err := metrics.New(metrics.Config{Registerer: registry, Pool: pool})
	if err != nil {
		return nil, err
	}
	return &demoMetrics{m, promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true})}, nil
}
