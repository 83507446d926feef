package shop_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/internal/shop"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) {
	if orders := os.Getenv(bankVariable); orders != "" {
		os.Exit(beBank(orders))
	}
	pgtest.Main(m)
}

// running is a shop that serves on a real port.
type running struct {
	t    *testing.T
	pool *pgxpool.Pool
	url  string
	http *http.Client
	db   *idem.DB
	stop context.CancelFunc
	done chan error
}

// open starts a shop on a database of its own; it is stopped when the test
// ends, and must have nothing to say then.
func open(t *testing.T, cfg shop.Config) *running {
	t.Helper()
	r := openOn(t, pgtest.New(t), cfg)
	t.Cleanup(func() {
		for v, err := range idem.Check(context.Background(), r.db) {
			t.Errorf("check: %+v, %v", v, err)
		}
	})
	return r
}

// openOn is open on a database that is not checked.
func openOn(t *testing.T, pool *pgxpool.Pool, cfg shop.Config) *running {
	t.Helper()
	if err := shop.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	s, err := shop.New(t.Context(), pool, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &running{t: t, pool: pool, url: "http://" + ln.Addr().String(), db: s.DB(), stop: stop, done: make(chan error, 1),
		http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}}
	go func() { r.done <- s.Run(ctx, ln) }()
	t.Cleanup(r.close)
	return r
}

func (r *running) close() {
	r.stop()
	if err := <-r.done; err != nil {
		r.t.Errorf("Run: got %v, want nil after a shutdown", err)
	}
	r.done <- nil
}

// answer is what a client was told.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) code(t *testing.T) string {
	t.Helper()
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type: got %q, want application/problem+json (body %s)", got, a.body)
	}
	var p struct{ Type, Title, Detail, Code string }
	if err := json.Unmarshal([]byte(a.body), &p); err != nil {
		t.Fatalf("not a problem: %v: %s", err, a.body)
	}
	if p.Title == "" || p.Detail == "" || !strings.HasSuffix(p.Type, "#"+p.Code) {
		t.Errorf("problem lacks a title, a detail or a type: %s", a.body)
	}
	return p.Code
}

// send makes one request; header holds names and values in turn.
func (r *running) send(method, path, body string, header ...string) (answer, error) {
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	w, err := r.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer w.Body.Close()
	got, err := io.ReadAll(w.Body)
	return answer{w.StatusCode, w.Header, string(got)}, err
}

func (r *running) must(method, path, body string, header ...string) answer {
	r.t.Helper()
	a, err := r.send(method, path, body, header...)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

// wantStats checks the counts, once no task is left.
func (r *running) wantStats(want string) {
	r.t.Helper()
	r.waitForTasks()
	if got := r.must("GET", "/stats", ""); got.status != 200 || got.body != want {
		r.t.Errorf("GET /stats: got %d %s, want 200 %s", got.status, got.body, want)
	}
}

// waitForTasks waits until every task has come to its end.
func (r *running) waitForTasks() {
	r.t.Helper()
	waitFor(r.t, "the tasks to come to their end", func() bool {
		var open bool
		err := r.pool.QueryRow(r.t.Context(), "select exists (select from idem.tasks where finished_at is null)").Scan(&open)
		return err == nil && !open
	})
}

func (r *running) wantRows(table string, want int) {
	r.t.Helper()
	var got int
	if err := r.pool.QueryRow(r.t.Context(), "select count(*) from "+table).Scan(&got); err != nil {
		r.t.Fatal(err)
	}
	if got != want {
		r.t.Errorf("%s: got %d rows, want %d", table, got, want)
	}
}
