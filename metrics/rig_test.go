package metrics_test

import (
	"bufio"
	"context"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/metrics"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// measured is a registry with Idem's metrics, and what a scrape of it says.
type measured struct {
	*metrics.Metrics
	registry *prometheus.Registry
}

func measure(t testing.TB, c metrics.Config) measured {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	c.Registerer = registry
	m, err := metrics.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return measured{m, registry}
}

// scrape is what Prometheus would get: values by name and labels, as they are written.
func (m measured) scrape(t testing.TB) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	lines := bufio.NewScanner(strings.NewReader(m.text(t, "text/plain")))
	for lines.Scan() {
		line := lines.Text()
		at := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || at < 0 {
			continue
		}
		v, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		values[line[:at]] = v
	}
	return values
}

func (m measured) text(t testing.TB, format string) string {
	t.Helper()
	r := httptest.NewRequest("GET", "/metrics", nil)
	r.Header.Set("Accept", format)
	w := httptest.NewRecorder()
	promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true}).ServeHTTP(w, r)
	if w.Code != 200 {
		t.Fatalf("the scrape failed: %d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// want fails unless a scrape has exactly these values.
func (m measured) want(t testing.TB, want map[string]float64) {
	t.Helper()
	got := m.scrape(t)
	for name, v := range want {
		if have, there := got[name]; !there || have != v {
			t.Errorf("%s is %v (there: %v), want %v", name, have, there, v)
		}
	}
}

func open(t testing.TB, pool *pgxpool.Pool, observe func(context.Context, idem.Event)) *idem.DB {
	t.Helper()
	db, err := idem.Open(t.Context(), pool, idem.Config{Observe: observe})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

func exec(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(context.Background(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}
