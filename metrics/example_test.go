package metrics_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/metrics"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// A program counts what its guards and workers tell, and serves it beside its routes.
func ExampleNew() {
	ctx := context.Background()
	pool, done := pgtest.ForExample() // a *pgxpool.Pool on a migrated database
	defer done()

	registry := prometheus.NewRegistry() // or leave Registerer out for the default one
	m, err := metrics.New(metrics.Config{Registerer: registry, Pool: pool})
	if err != nil {
		panic(err)
	}
	db, err := idem.Open(ctx, pool, idem.Config{Observe: m.Observe})
	if err != nil {
		panic(err)
	}
	guard, err := idemhttp.New(db, idemhttp.Config{Scope: idemhttp.Public()})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	created := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	mux.Handle("POST /orders", guard.Route(idemhttp.Route{Name: "POST /orders"})(created))
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))

	for range 3 { // the same request three times
		r := httptest.NewRequest("POST", "/orders", strings.NewReader(`{"amount":1500}`))
		r.Header.Set("Idempotency-Key", "order-17")
		mux.ServeHTTP(httptest.NewRecorder(), r)
	}

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for lines := bufio.NewScanner(w.Body); lines.Scan(); {
		for _, outcome := range []string{"executed", "replayed", "mismatch"} {
			if strings.HasPrefix(lines.Text(), `idem_requests_total{outcome="`+outcome) {
				fmt.Println(lines.Text())
			}
		}
	}
	// Output:
	// idem_requests_total{outcome="executed",route="POST /orders"} 1
	// idem_requests_total{outcome="mismatch",route="POST /orders"} 0
	// idem_requests_total{outcome="replayed",route="POST /orders"} 2
}
