package idemhttp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5"
)

func retryable(t *testing.T, got reply) bool {
	t.Helper()
	var p struct{ Retryable *bool }
	if err := json.Unmarshal([]byte(got.body), &p); err != nil || p.Retryable == nil {
		t.Fatalf("the problem is %s (%v)", got.body, err)
	}
	return *p.Retryable
}

// Only an operator settles an unknown outcome: no number of seconds is true.
func TestProblem_unknownOutcomeHasNoRetryAfter(t *testing.T) {
	r := newRig(t)
	r.handle("/x", idemhttp.Route{KeyOptional: true}, func(w http.ResponseWriter, req *http.Request) {
		_ = execute("commit")(req.Context(), idem.Tx(req.Context()))
		w.WriteHeader(http.StatusCreated)
	})
	r.serve()
	for range 2 {
		got := r.send(post("/x", "k", "{}"))
		r.want(got, 409, "outcome-unknown")
		if after, sent := got.header["Retry-After"]; sent || !retryable(t, got) {
			t.Errorf("Retry-After is %q, the problem %s", after, got.body)
		}
	}
	unkeyed := r.send(post("/x", "", "{}")) // whose repeat would be another request
	r.want(unkeyed, 409, "outcome-unknown")
	if retryable(t, unkeyed) || unkeyed.header.Get("Idempotency-Status") != "unguarded" {
		t.Errorf("without a key got %s %v", unkeyed.body, unkeyed.header)
	}
}

func TestRoute_guardedHandlerWithinAnotherIsNotApplied(t *testing.T) {
	r := newRig(t)
	inner := r.guard.Route(idemhttp.Route{Name: "inner"})(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		t.Error("the inner handler ran")
		w.WriteHeader(http.StatusCreated)
	}))
	r.handle("/x", idemhttp.Route{Wait: time.Minute}, func(w http.ResponseWriter, req *http.Request) {
		if err := insertOrder(req); err != nil {
			panic(err)
		}
		inner.ServeHTTP(w, req)
	})
	r.serve()
	got := r.send(post("/x", "k", "{}")) // a wait for itself would be a minute
	r.want(got, 500, "not-applied")
	r.wantFree()
	r.wantRows("select count(*) from orders", 0)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.Err != nil && strings.Contains(e.Err.Error(), "guard a request once") {
			return
		}
	}
	t.Errorf("no event says what is wrong: %+v", r.events)
}

// Rows that the handler has left open, or has never read, end with it.
func TestTx_whatIsLeftUnreadDoesNotMatter(t *testing.T) {
	// pgx loses rows that are open when it is asked for more in the mode exec, for a
	// pooler; the connection stays busy, and the answer is 503.
	r := rigOn(t, pgtest.Pool(t, pgtest.Direct(t, pgtest.NewURL(t))))
	var runs atomic.Int64
	for path, do := range map[string]attempt{
		"/open":     unread("select generate_series(1, 10)"),
		"/unread":   unread("insert into orders (customer, amount) values (2, 2) returning id"),
		"/queryrow": queryRow("insert into orders (customer, amount) values (2, 2) returning id"),
		"/batch":    unreadBatch,
		"/busy":     inTurn(unread("select generate_series(1, 10)"), unread("select 1"), execute("select 1")),
	} {
		mapping(r, path, idemhttp.Route{}, &runs, do)
	}
	r.serve()
	for i, path := range []string{"/open", "/unread", "/queryrow", "/batch", "/busy"} {
		r.want(r.send(post(path, path[1:], "{}")), 201, "")
		if got := r.send(post(path, path[1:], "{}")); got.status != 201 || !got.replayed() {
			t.Errorf("%s: the repeat got %d, replayed %v", path, got.status, got.replayed())
		}
		r.wantRows("select count(*) from orders where customer = 1", i+1)
	}
	r.wantRows("select count(*) from orders where customer = 2", 3)
	if n := runs.Load(); n != 5 {
		t.Errorf("the handlers ran %d times, want 5", n)
	}
}

// queryRow never scans.
func queryRow(sql string) attempt {
	return func(ctx context.Context, tx pgx.Tx) error { _ = tx.QueryRow(ctx, sql); return nil }
}

func unreadBatch(ctx context.Context, tx pgx.Tx) error {
	b := &pgx.Batch{}
	b.Queue("select generate_series(1, 10)")
	b.Queue("insert into orders (customer, amount) values (2, 2)")
	rows, err := tx.SendBatch(ctx, b).Query()
	if err == nil {
		rows.Next()
	}
	return err
}
