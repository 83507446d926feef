package idemhttp_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/jackc/pgx/v5"
)

// calls is what functions given to AfterCommit have said, in order.
type calls struct {
	mu   sync.Mutex
	said []string
}

func (c *calls) add(s string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.said = append(c.said, s)
}

func (c *calls) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	said := c.said
	c.said = nil
	return said
}

func TestAfterCommit_runsInOrderOnceTheRowsAreThere(t *testing.T) {
	r := newRig(t)
	var c calls
	r.handle("/x", idemhttp.Route{KeyOptional: true}, func(w http.ResponseWriter, req *http.Request) {
		for _, name := range []string{"a", "b", "c"} {
			idem.AfterCommit(req.Context(), func(ctx context.Context) {
				var rows int
				if err := r.pool.QueryRow(ctx, "select count(*) from orders").Scan(&rows); err != nil {
					name = err.Error()
				}
				if _, bounded := ctx.Deadline(); !bounded {
					name = "a context without an end"
				}
				c.add(name + " sees " + strconv.Itoa(rows))
			})
		}
		if err := insertOrder(req); err != nil {
			panic(err)
		}
		w.WriteHeader(http.StatusCreated)
	})
	r.serve()
	for i, key := range []string{"k", ""} {
		r.want(r.send(post("/x", key, "{}")), 201, "")
		n := strconv.Itoa(i + 1)
		if got, want := c.take(), []string{"a sees " + n, "b sees " + n, "c sees " + n}; !slices.Equal(got, want) {
			t.Errorf("key %q: got %q, want %q", key, got, want)
		}
	}
	r.want(r.send(post("/x", "k", "{}")), 201, "")
	if got := c.take(); got != nil {
		t.Errorf("a replay called %q", got)
	}
}

func TestAfterCommit_isNotCalledWhenTheRowsAreGone(t *testing.T) {
	r := newRig(t)
	if _, err := r.pool.Exec(t.Context(), deferred["trigger"].schema); err != nil {
		t.Fatal(err)
	}
	var c calls
	var runs atomic.Int64
	for path, do := range map[string]attempt{
		"/refused":  func(context.Context, pgx.Tx) error { return errors.New("409") },
		"/panics":   func(context.Context, pgx.Tx) error { panic("boom") },
		"/deferred": execute(deferred["trigger"].violate),
		"/rolled":   execute("rollback"),
		"/down":     execute(raise("53200")),
	} {
		mapping(r, path, idemhttp.Route{}, &runs, func(ctx context.Context, tx pgx.Tx) error {
			idem.AfterCommit(ctx, func(context.Context) { c.add(path) })
			return do(ctx, tx)
		})
	}
	mapping(r, "/kept", idemhttp.Route{}, &runs, func(ctx context.Context, _ pgx.Tx) error {
		idem.KeepWrites(ctx)
		idem.AfterCommit(ctx, func(context.Context) { c.add("kept") })
		return errors.New("409")
	})
	var tries atomic.Int64
	mapping(r, "/rerun", idemhttp.Route{}, &runs, func(ctx context.Context, tx pgx.Tx) error {
		n := tries.Add(1)
		idem.AfterCommit(ctx, func(context.Context) { c.add("run " + strconv.FormatInt(n, 10)) })
		if n == 1 {
			return execute(raise("40001"))(ctx, tx)
		}
		return nil
	})
	r.serve()
	for _, path := range []string{"/refused", "/panics", "/deferred", "/rolled", "/down"} {
		if got := r.send(post(path, path, "{}")); got.status == 201 {
			t.Errorf("%s: got 201", path)
		}
	}
	if got := c.take(); got != nil {
		t.Errorf("called after %q, whose rows are gone", got)
	}
	r.want(r.send(post("/kept", "kept", "{}")), 409, "")
	r.want(r.send(post("/rerun", "rerun", "{}")), 201, "")
	if got := c.take(); !slices.Equal(got, []string{"kept", "run 2"}) {
		t.Errorf("called %q, want kept and run 2", got)
	}
}

func TestAfterCommit_panicIsReportedAndChangesNothing(t *testing.T) {
	r := newRig(t)
	var c calls
	r.handle("/x", idemhttp.Route{}, func(w http.ResponseWriter, req *http.Request) {
		idem.AfterCommit(req.Context(), func(context.Context) { panic("boom") })
		idem.AfterCommit(req.Context(), func(context.Context) { c.add("next") })
		w.WriteHeader(http.StatusCreated)
	})
	r.serve()
	r.want(r.send(post("/x", "k", "{}")), 201, "")
	if got := c.take(); !slices.Equal(got, []string{"next"}) {
		t.Errorf("after the panic: %q, want next", got)
	}
	if got := r.send(post("/x", "k", "{}")); got.status != 201 || !got.replayed() {
		t.Errorf("the repeat got %d, replayed %v", got.status, got.replayed())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.Kind == idem.EventPanic && e.Err != nil && e.Key == "k" {
			return
		}
	}
	t.Error("the panic was not reported")
}
