package idemhttp_test

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/faultproxy"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A round trip ends where the client waits: at a Sync.
func TestLease_countsItsRoundTrips(t *testing.T) {
	proxy, err := faultproxy.NewPostgres(pgtest.NewURL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	config, err := pgxpool.ParseConfig(proxy.URL())
	if err != nil {
		t.Fatal(err)
	}
	// A ping, or a second connection that has to prepare its statements, would be more.
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	config.MaxConns = 1
	r := rigOn(t, pgtest.PoolWith(t, config))
	route := idemhttp.Route{Lease: idemhttp.DefaultLease}
	r.handle("/none", route, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "made") })
	r.handle("/one", route, func(w http.ResponseWriter, req *http.Request) {
		if err := insertOrder(req); err != nil {
			panic(err)
		}
		w.WriteHeader(http.StatusCreated)
	})
	r.serve()
	for _, path := range []string{"/none", "/one"} { // statements are prepared
		r.send(post(path, path, "{}"))
		r.send(post(path, path, "{}"))
	}
	for _, c := range []struct {
		what, path, key string
		status, want    int
	}{
		{"a replay", "/one", "/one", 201, 1},
		{"a request without a statement", "/none", "a", 200, 2},
		{"a request with one statement", "/one", "b", 201, 3},
	} {
		steps, err := proxy.Enumerate(func() error {
			r.want(r.send(post(c.path, c.key, "{}")), c.status, "")
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for _, s := range steps {
			if s.Type == "Sync" {
				got++
			}
		}
		if got != c.want {
			t.Errorf("%s takes %d round trips, want %d: %v", c.what, got, c.want, steps)
		}
	}
}
