package idemhttp_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/jackc/pgx/v5"
)

func raw(sql string) attempt {
	return func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Conn().Exec(ctx, sql)
		return err
	}
}

// ends are the ways in which a handler ends the transaction itself, and what is
// left of the key: free, since the rows are gone for sure, or unknown.
var ends = map[string]struct {
	do   attempt
	left string
}{
	"tx.Commit":          {func(ctx context.Context, tx pgx.Tx) error { return tx.Commit(ctx) }, "free"},
	"tx.Rollback":        {func(ctx context.Context, tx pgx.Tx) error { return tx.Rollback(ctx) }, "free"},
	"rollback":           {execute("rollback"), "free"},
	"abort":              {execute("  ABORT ;"), "free"},
	"rollback and chain": {execute("rollback and chain"), "free"},
	"commit of what has failed": {func(ctx context.Context, tx pgx.Tx) error {
		_ = execute("select 1/0")(ctx, tx)
		return execute("commit")(ctx, tx)
	}, "free"},
	"commit":                  {execute("commit"), "unknown"},
	"end":                     {execute("end;"), "unknown"},
	"commit and chain":        {execute("commit and chain"), "unknown"},
	"commit; begin":           {execute("commit; begin"), "unknown"},
	"commit; begin; rollback": {execute("commit; begin; rollback"), "unknown"},
	"commit; rollback":        {execute("commit; rollback"), "unknown"},
	"commit; select":          {execute("commit; select 1"), "unknown"},
	"commit; begin; select":   {execute("commit; begin; select 1"), "unknown"},
	"commit and begin apart": {func(ctx context.Context, tx pgx.Tx) error {
		_ = execute("commit")(ctx, tx)
		return execute("begin")(ctx, tx)
	}, "unknown"},
	"Query": {func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, "commit")
		rows.Close()
		return err
	}, "unknown"},
	"QueryRow": {func(ctx context.Context, tx pgx.Tx) error { _ = tx.QueryRow(ctx, "commit").Scan(); return nil }, "unknown"},
	"SendBatch": {func(ctx context.Context, tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue("commit")
		return tx.SendBatch(ctx, b).Close()
	}, "unknown"},
	"prepared": {func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Prepare(ctx, "c", "commit"); err != nil {
			return err
		}
		return execute("c")(ctx, tx)
	}, "unknown"},
	"in a savepoint": {func(ctx context.Context, tx pgx.Tx) error {
		nested, err := tx.Begin(ctx)
		if err == nil {
			err = execute("commit")(ctx, nested)
		}
		return err
	}, "unknown"},
	"raw commit":             {raw("commit"), "unknown"},
	"raw commit and chain":   {raw("commit and chain"), "unknown"},
	"raw commit; begin":      {raw("commit; begin"), "unknown"},
	"raw rollback":           {raw("rollback"), "unknown"}, // nothing tells it from a commit
	"raw rollback and chain": {raw("rollback and chain"), "unknown"},
	"raw rollback; begin":    {raw("rollback; begin"), "unknown"},
}

// answersOf are what such a handler does next.
var answersOf = map[string]func(w http.ResponseWriter){
	"201":   func(w http.ResponseWriter) { w.WriteHeader(201) },
	"409":   func(w http.ResponseWriter) { w.WriteHeader(409) },
	"500":   func(w http.ResponseWriter) { w.WriteHeader(500) },
	"panic": func(http.ResponseWriter) { panic("boom") },
}

func TestD6_transactionEndedByTheHandlerIsFoundOut(t *testing.T) {
	r := newRig(t)
	var outside recoverer
	var runs atomic.Int64
	var healthy atomic.Bool
	r.wrap = outside.wrap
	r.handle("/x", idemhttp.Route{}, func(w http.ResponseWriter, req *http.Request) {
		runs.Add(1)
		q, tx, ctx := req.URL.Query(), idem.Tx(req.Context()), req.Context()
		if _, err := tx.Exec(ctx, "insert into orders (customer, amount) values ($1, 1)", q.Get("id")); err != nil {
			panic(err)
		}
		if healthy.Load() {
			w.WriteHeader(201)
			return
		}
		_ = ends[q.Get("end")].do(ctx, tx)
		if q.Get("further") == "true" {
			_, _ = tx.Exec(ctx, "insert into orders (customer, amount) values ($1, 2)", q.Get("id"))
		}
		answersOf[q.Get("answer")](w)
	})
	r.serve()
	id := 0
	for end, way := range ends {
		for answer := range answersOf {
			for _, further := range []bool{false, true} {
				id++
				t.Run(fmt.Sprintf("%s, %s, further %v", end, answer, further), func(t *testing.T) {
					r.t = t
					path := fmt.Sprintf("/x?id=%d&end=%s&answer=%s&further=%v", id, escape(end), answer, further)
					runs.Store(0)
					healthy.Store(false)
					first := r.send(post(path, fmt.Sprint("k", id), "{}"))
					healthy.Store(true)
					wantEnded(r, first, way.left, answer, post(path, fmt.Sprint("k", id), "{}"), id, &runs)
				})
			}
		}
	}
	r.t = t
}

func escape(s string) string { return strings.NewReplacer(" ", "%20", ";", "%3B").Replace(s) }

// wantEnded checks what the first client got, what is left, and what repeats get.
func wantEnded(r *rig, first reply, left, answer string, again sending, id int, runs *atomic.Int64) {
	r.t.Helper()
	switch {
	case answer == "panic":
		r.want(first, http.StatusTeapot, "")
	case left == "unknown":
		r.want(first, 409, "outcome-unknown")
	case answer == "500" && first.problem() == "": // the handler's own 500 is as true
		r.want(first, 500, "")
	default:
		r.want(first, 500, "not-applied")
	}
	if left == "free" {
		r.wantRows("select count(*) from orders where customer = $1", 0, id)
		r.wantRows("select count(*) from idem.idempotency_keys where key = $1", 0, again.key)
		r.want(r.send(again), 201, "")
		r.wantRows("select count(*) from orders where customer = $1 and amount = 1", 1, id)
		return
	}
	r.wantState(again.key, "unknown")
	for range 2 {
		r.want(r.send(again), 409, "outcome-unknown")
	}
	r.wantRuns(runs, 1)
	other := again
	other.body = "another"
	r.want(r.send(other), 409, "key-mismatch")
}

func TestD6_rollingBackToASavepointEndsNothing(t *testing.T) {
	r := newRig(t)
	var runs atomic.Int64
	mapping(r, "/x", idemhttp.Route{}, &runs, func(ctx context.Context, tx pgx.Tx) error {
		for _, sql := range []string{"savepoint supply_chain", "delete from orders", "rollback to savepoint supply_chain"} {
			if err := execute(sql)(ctx, tx); err != nil {
				return err
			}
		}
		return nil
	})
	r.serve()
	r.want(r.send(post("/x", "k", "{}")), 201, "")
	if got := r.send(post("/x", "k", "{}")); got.status != 201 || !got.replayed() {
		t.Errorf("the repeat got %d, replayed %v", got.status, got.replayed())
	}
	r.wantRows("select count(*) from orders", 1)
}

func TestD6_preparedTransactionIsUnknown(t *testing.T) {
	r := newRig(t)
	var runs atomic.Int64
	mapping(r, "/x", idemhttp.Route{}, &runs, execute("prepare transaction 'aside'"))
	r.serve()
	r.want(r.send(post("/x", "k", "{}")), 409, "outcome-unknown")
	r.want(r.send(post("/x", "k", "{}")), 409, "outcome-unknown")
	if _, err := r.pool.Exec(t.Context(), "commit prepared 'aside'"); err != nil {
		t.Fatal(err)
	}
	r.want(r.send(post("/x", "k", "{}")), 409, "outcome-unknown")
	r.wantRows("select count(*) from orders", 1)
	r.wantRuns(&runs, 1)
}

func TestD6_waitersOfACommitAreToldThatTheOutcomeIsUnknown(t *testing.T) {
	for answer, do := range answersOf {
		t.Run(answer, func(t *testing.T) {
			r := newRig(t)
			var g *gate
			r.handle("/x", idemhttp.Route{}, func(w http.ResponseWriter, req *http.Request) {
				if err := insertOrder(req); err != nil {
					panic(err)
				}
				g.pass()
				_ = execute("commit")(req.Context(), idem.Tx(req.Context()))
				do(w)
			})
			r.serve()
			g = newGate(t)
			first := r.begin(post("/x", "k", "{}"))
			g.inside(t)
			others := r.beginMany(3, post("/x", "k", "{}"))
			r.waiters("k", 3)
			g.release()
			if got := <-first; answer != "panic" {
				r.want(got, 409, "outcome-unknown")
			}
			for _, other := range others {
				r.want(<-other, 409, "outcome-unknown")
			}
			r.wantRows("select count(*) from orders", 1)
			r.wantState("k", "unknown")
		})
	}
}

func TestD6_commitAndThenNeverReturningIsUnknown(t *testing.T) {
	r := newRig(t)
	var g *gate
	var runs atomic.Int64
	mapping(r, "/x", idemhttp.Route{Limit: 200 * time.Millisecond}, &runs, func(ctx context.Context, tx pgx.Tx) error {
		err := execute("commit")(ctx, tx)
		g.pass()
		return err
	})
	r.serve()
	g = newGate(t)
	r.want(r.send(post("/x", "k", "{}")), 409, "outcome-unknown")
	r.want(r.send(post("/x", "k", "{}")), 409, "outcome-unknown")
	r.wantRows("select count(*) from orders", 1)
	r.wantRuns(&runs, 1)
}
