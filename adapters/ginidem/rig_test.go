package ginidem_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/idem-go/idem"
	"github.com/idem-go/idem/adapters/ginidem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.TestMode)
	pgtest.Main(m)
}

// rig is a gin server with one guarded route.
type rig struct {
	t      testing.TB
	pool   *pgxpool.Pool
	guard  *idemhttp.Guard
	router *gin.Engine
	server *httptest.Server
	runs   atomic.Int64 // of the handler's first line
	inner  atomic.Int64 // of the middleware between the guard and the handler
}

// handler is what a test does after an order of the amount 1 was inserted.
type handler func(c *gin.Context, run int64)

var errOwn = errors.New("the handler's own")

func newRig(t testing.TB, route idemhttp.Route, do handler, outside ...gin.HandlerFunc) *rig {
	t.Helper()
	r := &rig{t: t, pool: pgtest.New(t), router: gin.New()}
	if _, err := r.pool.Exec(t.Context(), "create table orders (id bigint generated always as identity primary key, amount bigint not null)"); err != nil {
		t.Fatal(err)
	}
	db, err := idem.Open(t.Context(), r.pool, idem.Config{})
	if err != nil {
		t.Fatal(err)
	}
	// The principal is where gin's middleware keeps it.
	scope := func(req *http.Request) (string, error) { return ginidem.Context(req).GetString("principal"), nil }
	if r.guard, err = idemhttp.New(db, idemhttp.Config{Scope: scope}); err != nil {
		t.Fatal(err)
	}
	route.Name = "POST /orders/:name"
	r.router.Use(func(c *gin.Context) { c.Set("principal", "guest") })
	r.router.Use(outside...)
	guard := ginidem.Guard(r.guard, route)
	between := func(c *gin.Context) {
		r.inner.Add(1)
		c.Next()
	}
	r.router.Any("/orders/:name", guard, between, func(c *gin.Context) {
		run := r.runs.Add(1)
		if tx, err := idem.TxFrom(c.Request.Context()); err == nil {
			if _, err := tx.Exec(c.Request.Context(), "insert into orders (amount) values (1)"); err != nil {
				_ = c.AbortWithError(http.StatusInternalServerError, err)
				return
			}
		}
		do(c, run)
	})
	r.server = httptest.NewUnstartedServer(r.router)
	r.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	r.server.Start()
	t.Cleanup(r.server.Close)
	return r
}

type reply struct {
	status   int
	replayed bool
	problem  string
	body     string
	closes   bool
}

func (r *rig) send(key, body string) reply { return r.sendAs(http.MethodPost, key, body) }

func (r *rig) sendAs(method, key, body string) reply {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.server.URL+"/orders/one", strings.NewReader(body))
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
	_ = json.Unmarshal(text, &problem) // an answer of the handler's need not be JSON
	return reply{res.StatusCode, res.Header.Get("Idempotent-Replayed") == "true", problem.Code, string(text), res.Close}
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
