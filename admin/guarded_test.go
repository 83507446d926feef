package admin_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/jackc/pgx/v5/pgxpool"
)

// guarded is a real guard before a handler of a test's own. Two of them on one
// database are two processes: they share nothing but it.
type guarded struct {
	handler http.Handler
	runs    atomic.Int64
}

func newGuarded(t *testing.T, db *idem.DB, route idemhttp.Route, handle http.HandlerFunc) *guarded {
	t.Helper()
	guard, err := idemhttp.New(db, idemhttp.Config{Scope: func(*http.Request) (string, error) { return "a", nil }})
	if err != nil {
		t.Fatal(err)
	}
	g := &guarded{}
	route.Name = "POST /"
	g.handler = guard.Route(route)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.runs.Add(1)
		handle(w, r)
	}))
	return g
}

// post sends one request under a key and returns its status.
func (g *guarded) post(ctx context.Context, key, body string) int {
	return g.send(ctx, key, body).Code
}

func (g *guarded) send(ctx context.Context, key, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Idempotency-Key", key)
	w := httptest.NewRecorder()
	g.handler.ServeHTTP(w, r)
	return w
}

// problemCode is the code of a problem, or nothing if it is none.
func problemCode(w *httptest.ResponseRecorder) string {
	var problem struct{ Code string }
	_ = json.Unmarshal(w.Body.Bytes(), &problem) // a handler's body is no problem
	return problem.Code
}

// answering is a handler that writes a row and answers with a status.
func answering(t *testing.T, pool *pgxpool.Pool, status int, keepWrites bool, body string) http.HandlerFunc {
	t.Helper()
	if _, err := pool.Exec(t.Context(), "create table if not exists written (id bigint generated always as identity)"); err != nil {
		t.Fatal(err)
	}
	return func(w http.ResponseWriter, r *http.Request) {
		if _, err := idem.Tx(r.Context()).Exec(r.Context(), "insert into written default values"); err != nil {
			panic(err)
		}
		if keepWrites {
			idem.KeepWrites(r.Context())
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// written counts the rows of such handlers.
func written(t *testing.T, db *idem.DB) (n int) {
	t.Helper()
	if err := db.Pool().QueryRow(t.Context(), "select count(*) from written").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// audited counts the lines of the audit.
func audited(t *testing.T, db *idem.DB) (n int) {
	t.Helper()
	if err := db.Pool().QueryRow(t.Context(), "select count(*) from idem.audit").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
