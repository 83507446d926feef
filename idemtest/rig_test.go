package idemtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// tables are the program's own.
func tables(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := pool.Exec(ctx, "create table orders (id bigint generated always as identity primary key, amount bigint not null)")
	return err
}

// guarded returns handler behind a guarded route.
func guarded(route idemhttp.Route, handler func(pool *pgxpool.Pool) http.HandlerFunc) func(context.Context, *pgxpool.Pool) (http.Handler, error) {
	return func(ctx context.Context, pool *pgxpool.Pool) (http.Handler, error) {
		db, err := idem.Open(ctx, pool, idem.Config{})
		if err != nil {
			return nil, err
		}
		guard, err := idemhttp.New(db, idemhttp.Config{Scope: idemhttp.Public()})
		if err != nil {
			return nil, err
		}
		named := route // several are served at a time
		named.Name = "POST /orders"
		return guard.Route(named)(handler(pool)), nil
	}
}

// unguarded returns handler as it is.
func unguarded(handler func(pool *pgxpool.Pool) http.HandlerFunc) func(context.Context, *pgxpool.Pool) (http.Handler, error) {
	return func(_ context.Context, pool *pgxpool.Pool) (http.Handler, error) { return handler(pool), nil }
}

// good is a handler as it should be.
func good(*pgxpool.Pool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { create(w, r, idem.Tx(r.Context())) }
}

// outside is a handler that writes outside of its transaction.
func outside(pool *pgxpool.Pool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { create(w, r, pool) }
}

type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func create(w http.ResponseWriter, r *http.Request, q querier) {
	var order struct{ ID, Amount int64 }
	if err := json.NewDecoder(r.Body).Decode(&order); err != nil {
		http.Error(w, "not an order", http.StatusUnprocessableEntity)
		return
	}
	err := q.QueryRow(r.Context(), "insert into orders (amount) values ($1) returning id", order.Amount).Scan(&order.ID)
	if err != nil {
		http.Error(w, "database", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Location", fmt.Sprintf("/orders/%d", order.ID))
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(order)
}

// order makes the request of an order.
func order() *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(`{"amount":1500}`))
	r.Header.Set("Idempotency-Key", "order-1")
	return r
}

// one wants exactly one order.
func one(ctx context.Context, pool *pgxpool.Pool) error {
	var orders int
	if err := pool.QueryRow(ctx, "select count(*) from orders").Scan(&orders); err != nil {
		return err
	}
	if orders != 1 {
		return fmt.Errorf("%d orders, want 1", orders)
	}
	return nil
}

// recorder is a testing.TB that writes down how it is failed.
type recorder struct {
	testing.TB
	failures []string
	cleanups []func()
}

func (r *recorder) Helper()             {}
func (r *recorder) Cleanup(fn func())   { r.cleanups = append(r.cleanups, fn) }
func (r *recorder) Logf(string, ...any) {}
func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// fatal ends what was given to record.
type fatal struct{}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	panic(fatal{})
}

// record runs do with a testing.TB that it may fail, its cleanups too, and
// returns how it did.
func record(t *testing.T, do func(t testing.TB)) (failures []string) {
	t.Helper()
	r := &recorder{TB: t}
	run := func(do func()) {
		defer func() {
			if p := recover(); p != nil && p != (fatal{}) {
				panic(p)
			}
		}()
		do()
	}
	run(func() { do(r) })
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		run(r.cleanups[i])
	}
	return r.failures
}

// wantFailure wants at least one failure, with all words in the first.
func wantFailure(t *testing.T, failures []string, words ...string) {
	t.Helper()
	if len(failures) == 0 {
		t.Fatalf("nothing failed, want a failure that says %q", words)
	}
	for _, word := range words {
		if !strings.Contains(failures[0], word) {
			t.Errorf("the failure is %q, want it to say %q", failures[0], word)
		}
	}
}
