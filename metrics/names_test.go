package metrics_test

import (
	"strings"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/metrics"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// Names, units and help are as Prometheus's own linter wants them, which is also behind
// promtool check metrics.
func TestNames_passPrometheusLinter(t *testing.T) {
	m := measure(t, metrics.Config{Pool: pgtest.New(t)})
	m.Observe(t.Context(), idem.Event{Kind: idem.EventRoute, Route: "POST /orders"})
	m.Observe(t.Context(), idem.Event{Kind: idem.EventHandler, Queue: "q", TaskKind: "k"})
	problems, err := promlint.New(strings.NewReader(m.text(t, "text/plain"))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
