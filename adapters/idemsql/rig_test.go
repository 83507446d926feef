package idemsql_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// rig is a server with one guarded route whose handler maps every error to 409.
type rig struct {
	t      testing.TB
	pool   *pgxpool.Pool
	server *httptest.Server
	runs   atomic.Int64
}

// work is what a handler does before it answers 201.
type work func(ctx context.Context, run int64) error

// answer makes a handler answer a status.
type answer int

func (a answer) Error() string { return fmt.Sprintf("answer %d", int(a)) }

func newRig(t testing.TB, route idemhttp.Route, do work) *rig {
	t.Helper()
	r := &rig{t: t, pool: pgtest.New(t)}
	if _, err := r.pool.Exec(t.Context(), "create table orders (id bigint generated always as identity primary key, amount bigint not null)"); err != nil {
		t.Fatal(err)
	}
	db, err := idem.Open(t.Context(), r.pool, idem.Config{})
	if err != nil {
		t.Fatal(err)
	}
	guard, err := idemhttp.New(db, idemhttp.Config{Scope: idemhttp.Public()})
	if err != nil {
		t.Fatal(err)
	}
	route.Name = "POST /orders"
	handler := guard.Route(route)(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		err := do(req.Context(), r.runs.Add(1))
		var chosen answer
		switch {
		case errors.As(err, &chosen):
			w.WriteHeader(int(chosen))
		case err != nil:
			http.Error(w, err.Error(), http.StatusConflict)
		default:
			w.WriteHeader(http.StatusCreated)
			_, _ = fmt.Fprintf(w, "run %d", r.runs.Load())
		}
	}))
	r.server = httptest.NewServer(recoverer(handler))
	t.Cleanup(r.server.Close)
	return r
}

// recoverer is the program's own, outside the guard.
func recoverer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if v := recover(); v != nil {
				http.Error(w, fmt.Sprint("recovered ", v), http.StatusTeapot)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

type reply struct {
	status   int
	replayed bool
	problem  string
	body     string
}

func (r *rig) send(key, body string) reply {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.server.URL+"/orders", strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", key)
	res, err := r.server.Client().Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	var problem struct{ Code string }
	_ = json.Unmarshal(text, &problem) // an answer of the handler's is not JSON
	return reply{res.StatusCode, res.Header.Get("Idempotent-Replayed") == "true", problem.Code, string(text)}
}

func (r *rig) want(got reply, status int, problem string) {
	r.t.Helper()
	if got.status != status || got.problem != problem {
		r.t.Fatalf("got %d %q %s, want %d %q", got.status, got.problem, got.body, status, problem)
	}
}

// wantCounts checks how many orders and how many keys there are.
func (r *rig) wantCounts(orders, keys int) {
	r.t.Helper()
	var gotOrders, gotKeys int
	err := r.pool.QueryRow(context.Background(), "select (select count(*) from orders), (select count(*) from idem.idempotency_keys)").Scan(&gotOrders, &gotKeys)
	if err != nil {
		r.t.Fatal(err)
	}
	if gotOrders != orders || gotKeys != keys {
		r.t.Fatalf("got %d orders and %d keys, want %d and %d", gotOrders, gotKeys, orders, keys)
	}
}
