package idemhttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/jackc/pgx/v5"
)

// overrunning serves an order and then what do does, with a limit of 300 ms, and
// remembers the backend. Once healthy, it answers 201.
type overrunning struct {
	*rig
	pid     atomic.Int32
	healthy atomic.Bool
}

func newOverrunning(t *testing.T, do func(w http.ResponseWriter, r *http.Request)) *overrunning {
	o := &overrunning{rig: newRig(t)}
	o.handle("/x", idemhttp.Route{Limit: 300 * time.Millisecond, KeyOptional: true}, func(w http.ResponseWriter, req *http.Request) {
		o.pid.Store(backendOf(t, idem.Tx(req.Context())))
		if err := insertOrder(req); err != nil {
			panic(err)
		}
		if !o.healthy.Load() {
			do(w, req)
		}
		w.WriteHeader(http.StatusCreated)
	})
	o.serve()
	return o
}

// wantGivenUp checks that got is the end of a request that was given up, and
// that nothing of it is left.
func (o *overrunning) wantGivenUp(got reply) {
	o.t.Helper()
	o.want(got, 503, "unavailable")
	if got.header.Get("Retry-After") == "" {
		o.t.Error("Retry-After is missing")
	}
	pid := o.pid.Load()
	eventually(o.t, "the backend of the handler that was given up ends", func() bool {
		var there bool
		if err := o.pool.QueryRow(context.Background(), "select exists (select from pg_stat_activity where pid = $1)", pid).Scan(&there); err != nil {
			o.t.Fatal(err)
		}
		return !there
	})
	eventually(o.t, "the pool's slot is free", func() bool { return o.pool.Stat().AcquiredConns() == 0 })
	o.wantFree()
	o.wantRows("select count(*) from orders", 0)
}

func (o *overrunning) wantHealthy() {
	o.t.Helper()
	o.healthy.Store(true)
	o.want(o.send(post("/x", "k", "{}")), 201, "")
	o.wantRows("select count(*) from orders", 1)
}

func TestD11_handlerThatNeverReturnsIsGivenUp(t *testing.T) {
	var g *gate
	type late struct{ write, exec, query, scan, batch, nested, deadline error }
	after := make(chan late, 1)
	o := newOverrunning(t, func(w http.ResponseWriter, r *http.Request) {
		tx := idem.Tx(r.Context())
		g.pass() // it does not look at its context
		var l late
		ctx := context.Background()
		w.Header().Set("X-Late", "yes")
		w.WriteHeader(http.StatusCreated)
		_, l.write = io.WriteString(w, "late")
		_, l.exec = tx.Exec(ctx, "insert into orders (customer, amount) values (1, 1)")
		_, l.query = tx.Query(ctx, "select 1")
		l.scan = tx.QueryRow(ctx, "select 1").Scan(nil)
		l.batch = tx.SendBatch(ctx, &pgx.Batch{}).Close()
		_, l.nested = tx.Begin(ctx)
		l.deadline = http.NewResponseController(w).SetWriteDeadline(time.Now())
		after <- l
	})
	g = newGate(t)
	begun := time.Now()
	got := o.send(post("/x", "k", "{}"))
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("the answer took %v, want about 300 ms", took)
	}
	o.wantGivenUp(got)
	g.release()
	l := <-after
	if !errors.Is(l.write, http.ErrHandlerTimeout) || !errors.Is(l.deadline, http.ErrHandlerTimeout) {
		t.Errorf("late use of the writer: %v, %v, want http.ErrHandlerTimeout", l.write, l.deadline)
	}
	for what, err := range map[string]error{"Exec": l.exec, "Query": l.query, "QueryRow": l.scan, "SendBatch": l.batch, "Begin": l.nested} {
		if !errors.Is(err, pgx.ErrTxClosed) {
			t.Errorf("late %s: got %v, want pgx.ErrTxClosed", what, err)
		}
	}
	o.wantHealthy()
	eventually(t, "the buffers are given back", func() bool { return o.guard.Buffered() == 0 })
}

// sleepLong blocks in the database, where only the guard ends it.
func sleepLong(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, "set local statement_timeout = 0"); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "select pg_sleep(60)")
	return err
}

func TestD11_handlerBlockedInTheDatabaseIsGivenUp(t *testing.T) {
	for name, ctxOf := range map[string]func(*http.Request) context.Context{
		"with a context of its own": func(*http.Request) context.Context { return context.Background() },
		"with the request's":        (*http.Request).Context,
	} {
		t.Run(name, func(t *testing.T) {
			done := make(chan error, 1)
			o := newOverrunning(t, func(w http.ResponseWriter, r *http.Request) {
				done <- sleepLong(ctxOf(r), idem.Tx(r.Context()))
				w.WriteHeader(http.StatusConflict)
			})
			o.wantGivenUp(o.send(post("/x", "k", "{}")))
			if err := <-done; err == nil {
				t.Error("the statement was not ended")
			}
			o.wantHealthy()
		})
	}
}

func TestD11_handlerThatHeedsItsContextIsUnavailableToo(t *testing.T) {
	o := newOverrunning(t, func(w http.ResponseWriter, r *http.Request) {
		fail409(w, sleepLong(r.Context(), idem.Tx(r.Context())))
	})
	o.wantGivenUp(o.send(post("/x", "k", "{}")))
	o.wantHealthy()
}

func TestD11_unguardedHandlerIsGivenUpToo(t *testing.T) {
	var g *gate
	o := newOverrunning(t, func(http.ResponseWriter, *http.Request) { g.pass() })
	g = newGate(t)
	o.wantGivenUp(o.send(post("/x", "", "{}")))
}

func TestD11_waitersOfAHandlerThatIsGivenUpAreTold(t *testing.T) {
	var g *gate
	var runs atomic.Int64
	r := newRig(t)
	r.handle("/x", idemhttp.Route{Limit: 2 * time.Second, Wait: time.Minute}, func(http.ResponseWriter, *http.Request) {
		runs.Add(1)
		g.pass()
	})
	r.serve()
	g = newGate(t)
	first := r.begin(post("/x", "k", "{}"))
	g.inside(t)
	others := r.beginMany(5, post("/x", "k", "{}"))
	r.waiters("k", 5)
	r.want(<-first, 503, "unavailable")
	for _, other := range others {
		r.want(<-other, 503, "unavailable")
	}
	if n := runs.Load(); n != 1 {
		t.Errorf("the handler ran %d times, want once", n)
	}
}

func TestLimits_areSetWithBegin(t *testing.T) {
	r := newRig(t)
	shown := make(chan string, 1)
	show := func(w http.ResponseWriter, req *http.Request) {
		var s string
		err := idem.Tx(req.Context()).QueryRow(req.Context(), `select concat_ws(' ', current_setting('statement_timeout'),
			current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout'),
			coalesce(current_setting('transaction_timeout', true), 'none'), current_setting('transaction_isolation'))`).Scan(&s)
		if err != nil {
			s = err.Error()
		}
		shown <- s
		w.WriteHeader(http.StatusCreated)
	}
	r.handle("/default", idemhttp.Route{KeyOptional: true}, show)
	r.handle("/other", idemhttp.Route{KeyOptional: true, Limit: 1500 * time.Millisecond, TxOptions: pgx.TxOptions{IsoLevel: pgx.Serializable}}, show)
	r.serve()
	var version int
	if err := r.pool.QueryRow(t.Context(), "select current_setting('server_version_num')::int").Scan(&version); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][2]string{
		"/default": {"30s 5s 35s ", "35s read committed"},
		"/other":   {"1500ms 5s 6500ms ", "6500ms serializable"},
	} {
		expected := want[0] + want[1]
		if version < 170000 {
			_, level, _ := strings.Cut(want[1], " ")
			expected = want[0] + "none " + level
		}
		for _, key := range []string{"k" + path, ""} {
			r.want(r.send(post(path, key, path)), 201, "")
			if got := <-shown; got != expected {
				t.Errorf("%s, key %q: got %q, want %q", path, key, got, expected)
			}
		}
	}
	var left string
	if err := r.pool.QueryRow(t.Context(), "show idle_in_transaction_session_timeout").Scan(&left); err != nil || left != "0" {
		t.Errorf("the pool's connection is left with %q (%v), want 0", left, err)
	}
}
