package idemhttp_test

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/jackc/pgx/v5"
)

// wantUnguarded checks one answer of a request without a key.
func wantUnguarded(r *rig, got reply, status int, problem string, rows int) {
	r.t.Helper()
	r.want(got, status, problem)
	if s := got.header.Get("Idempotency-Status"); s != "unguarded" {
		r.t.Errorf("Idempotency-Status is %q, want unguarded", s)
	}
	r.wantRows("select count(*) from orders", rows)
	r.wantFree()
}

func TestUnguarded_answersDecideAsTheyDoWithAKey(t *testing.T) {
	for _, c := range []struct {
		status, rows int
		keep         bool
	}{{200, 1, false}, {201, 1, false}, {303, 1, false}, {400, 0, false}, {402, 0, false}, {409, 0, false}, {409, 1, true},
		{410, 0, false}, {422, 0, false}, {422, 0, true}, {500, 0, false}} {
		t.Run(strconv.Itoa(c.status)+strconv.FormatBool(c.keep), func(t *testing.T) {
			r := newRig(t)
			var runs atomic.Int64
			r.handle("/x", idemhttp.Route{KeyOptional: true}, func(w http.ResponseWriter, req *http.Request) {
				runs.Add(1)
				if c.keep {
					idem.KeepWrites(req.Context())
				}
				if err := insertOrder(req); err != nil {
					panic(err)
				}
				http.Error(w, "said", c.status)
			})
			r.serve()
			for i := range 2 { // nothing is remembered: it runs again
				wantUnguarded(r, r.send(post("/x", "", "{}")), c.status, "", (i+1)*c.rows)
			}
			if n := runs.Load(); n != 2 {
				t.Errorf("the handler ran %d times, want 2", n)
			}
			if got := r.outcomes(); got["unguarded"] != 2 {
				t.Errorf("outcomes are %v, want unguarded twice", got)
			}
			guarded := r.send(post("/x", "k", "{}"))
			if s := guarded.header.Get("Idempotency-Status"); s != "" || guarded.status != c.status {
				t.Errorf("with a key: got %d, Idempotency-Status %q", guarded.status, s)
			}
		})
	}
}

func TestUnguarded_lostRacesRunAgainAndOthersAreUnavailable(t *testing.T) {
	r := newRig(t)
	var runs atomic.Int64
	route := idemhttp.Route{KeyOptional: true}
	mapping(r, "/once", route, &runs, func(ctx context.Context, tx pgx.Tx) error {
		if runs.Load() == 1 {
			return execute(raise("40P01"))(ctx, tx)
		}
		return nil
	})
	mapping(r, "/always", route, &runs, execute(raise("40001")))
	mapping(r, "/full", route, &runs, execute(raise("53100")))
	mapping(r, "/cut", route, &runs, execute("select pg_terminate_backend(pg_backend_pid())"))
	mapping(r, "/commits", route, &runs, execute("commit"))
	mapping(r, "/rolls-back", route, &runs, execute("rollback"))
	mapping(r, "/fails", route, &runs, execute("select 1/0"))
	r.serve()
	for _, c := range []struct {
		path    string
		status  int
		problem string
		runs    int64
		rows    int
	}{
		{"/once", 201, "", 2, 1}, {"/always", 503, "unavailable", 4, 1}, {"/full", 503, "unavailable", 1, 1}, {"/cut", 503, "unavailable", 1, 1},
		{"/rolls-back", 500, "not-applied", 1, 1}, {"/fails", 409, "", 1, 1}, {"/commits", 409, "outcome-unknown", 1, 2},
	} {
		runs.Store(0)
		wantUnguarded(r, r.send(post(c.path, "", "{}")), c.status, c.problem, c.rows)
		if n := runs.Load(); n != c.runs {
			t.Errorf("%s: the handler ran %d times, want %d", c.path, n, c.runs)
		}
	}
}

func TestUnguarded_panicIsRolledBackAndPassedOn(t *testing.T) {
	r := newRig(t)
	var outside recoverer
	var healthy atomic.Bool
	r.wrap = outside.wrap
	r.handle("/x", idemhttp.Route{KeyOptional: true}, func(_ http.ResponseWriter, req *http.Request) {
		if err := insertOrder(req); err != nil {
			panic(err)
		}
		if !healthy.Load() {
			panic("boom")
		}
	})
	r.serve()
	r.want(r.send(post("/x", "", "{}")), http.StatusTeapot, "")
	r.wantRows("select count(*) from orders", 0)
	healthy.Store(true)
	wantUnguarded(r, r.send(post("/x", "", "{}")), 200, "", 1)
	if saw := outside.saw(); len(saw) != 1 {
		t.Errorf("the recoverer saw %v, want boom once", saw)
	}
}
