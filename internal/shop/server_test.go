package shop_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/internal/shop"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestRun_finishesWhatRunsWhenItIsStopped(t *testing.T) {
	r := open(t, shop.Config{Faults: true})
	answered := make(chan error, 1)
	go func() {
		got, err := r.send("POST", "/orders", articleOrder, "Idempotency-Key", "k", "X-Demo-Delay", "500ms")
		if err == nil && got.status != 201 {
			err = fmt.Errorf("got %d %s", got.status, got.body)
		}
		answered <- err
	}()
	waitFor(t, "the order to be under way", func() bool {
		var running bool
		err := r.pool.QueryRow(t.Context(), `select count(*) > 0 from pg_stat_activity
			where datname = current_database() and state = 'idle in transaction'`).Scan(&running)
		return err == nil && running
	})
	r.close()
	if err := <-answered; err != nil {
		t.Errorf("the running request: %v, want 201", err)
	}
	if _, err := r.send("GET", "/healthz", ""); err == nil {
		t.Error("the shop still answers after Run returned")
	}
	r.wantRows("shop.orders", 1)
}

// waitFor polls until a condition holds, for at most 10 s.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(10 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited 10s for %s", what)
		}
	}
}

func TestHandler_explainsWhatIsNotThere(t *testing.T) {
	r := open(t, shop.Config{})
	if got := r.must("GET", "/nothing", ""); got.status != 404 || got.code(t) != "not-found" {
		t.Errorf("got %d %s, want 404", got.status, got.body)
	}
	got := r.must("DELETE", "/orders", "")
	if got.status != 405 || got.code(t) != "method-not-allowed" || got.header.Get("Allow") != "POST" {
		t.Errorf("got %d %s, Allow %q; want 405 that allows POST", got.status, got.body, got.header.Get("Allow"))
	}
	if got := r.must("GET", "/", ""); got.status != 200 || !strings.Contains(got.body, "POST /orders") {
		t.Errorf("got %d %s, want the endpoints", got.status, got.body)
	}
	if got := r.must("POST", "/orders", articleOrder); got.status != 400 || got.code(t) != "key-missing" {
		t.Errorf("got %d %s, want 400 key-missing", got.status, got.body)
	}
}

func TestReady_saysWhetherTheTablesAreThere(t *testing.T) {
	r := open(t, shop.Config{})
	if got := r.must("GET", "/readyz", ""); got.status != 200 {
		t.Errorf("got %d %s, want 200", got.status, got.body)
	}
	if _, err := r.pool.Exec(t.Context(), "drop table shop.bookings"); err != nil {
		t.Fatal(err)
	}
	got := r.must("GET", "/readyz", "")
	if got.status != 503 || got.code(t) != "unavailable" || got.header.Get("Retry-After") == "" {
		t.Errorf("without a table: got %d %s, want 503 with Retry-After", got.status, got.body)
	}
	if got := r.must("GET", "/healthz", ""); got.status != 200 {
		t.Errorf("healthz: got %d, want 200: the process lives", got.status)
	}
}

func TestReady_saysWhenTheDatabaseIsAway(t *testing.T) {
	good := pgtest.New(t)
	pool, err := pgxpool.New(t.Context(), good.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	s, err := shop.New(t.Context(), pool, shop.Config{})
	if err != nil {
		t.Fatal(err)
	}
	pool.Close()
	h := s.Handler()
	for path, want := range map[string]int{"/readyz": 503, "/healthz": 200} {
		if got := serve(h, path); got != want {
			t.Errorf("%s: got %d, want %d", path, got, want)
		}
	}
}

func TestNew_needsTheSchema(t *testing.T) {
	pool, err := pgxpool.New(t.Context(), pgtest.Empty(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := shop.New(t.Context(), pool, shop.Config{}); !errors.Is(err, idem.ErrNotMigrated) {
		t.Errorf("got %v, want ErrNotMigrated", err)
	}
}

func TestMigrate_worksAgainAndManyAtOnce(t *testing.T) {
	pool := pgtest.New(t)
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			if err := shop.Migrate(t.Context(), pool); err != nil {
				t.Errorf("got %v, want nil", err)
			}
		})
	}
	all.Wait()
	if err := shop.Migrate(t.Context(), pool); err != nil {
		t.Errorf("again: got %v, want nil", err)
	}
}

func TestForeignTables_namesOnlyWhatIsSomebodyElses(t *testing.T) {
	pool := pgtest.New(t)
	if err := shop.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if got, err := shop.ForeignTables(t.Context(), pool); err != nil || len(got) != 0 {
		t.Errorf("got %v, %v; want none", got, err)
	}
	if _, err := pool.Exec(t.Context(), `create table "their orders" (); create schema theirs; create view theirs.v as select 1`); err != nil {
		t.Fatal(err)
	}
	want := []string{`public."their orders"`, "theirs.v"}
	if got, err := shop.ForeignTables(t.Context(), pool); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

func TestLogger_getsALineForEveryGuardedRequest(t *testing.T) {
	var out syncedBuffer
	r := open(t, shop.Config{Logger: slog.New(slog.NewJSONHandler(&out, nil))})
	for range 3 {
		r.must("POST", "/orders", articleOrder, "Idempotency-Key", "k")
	}
	r.close()
	log := out.String()
	if n := strings.Count(log, `"outcome":"executed"`); n != 1 {
		t.Errorf("got %d lines of an execution, want 1:\n%s", n, log)
	}
	if n := strings.Count(log, `"outcome":"replayed"`); n != 2 {
		t.Errorf("got %d lines of a replay, want 2:\n%s", n, log)
	}
}

// syncedBuffer is a buffer that several goroutines may write to.
type syncedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func serve(h http.Handler, path string) int {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w.Code
}
