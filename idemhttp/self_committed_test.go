package idemhttp_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/jackc/pgx/v5"
)

// inTurn does one thing after the other, whatever becomes of each.
func inTurn(all ...attempt) attempt {
	return func(ctx context.Context, tx pgx.Tx) error {
		for _, do := range all {
			_ = do(ctx, tx)
		}
		return nil
	}
}

// givenUp is the context's key of a channel that is closed when the client has an
// answer.
type givenUp struct{}

// untilTheLimit stays in the handler until the guard has given it up and answered.
func untilTheLimit(ctx context.Context, _ pgx.Tx) error {
	<-ctx.Done()
	<-ctx.Value(givenUp{}).(chan struct{})
	return nil
}

// cut runs a statement that its context ends, which closes the connection.
func cut(sql string) attempt {
	return func(ctx context.Context, tx pgx.Tx) error {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
		defer cancel()
		return execute(sql)(ctx, tx)
	}
}

func batched(sqls ...string) attempt {
	return func(ctx context.Context, tx pgx.Tx) error {
		b := &pgx.Batch{}
		for _, sql := range sqls {
			b.Queue(sql)
		}
		return tx.SendBatch(ctx, b).Close()
	}
}

// unread leaves the rows of a statement to whoever ends the handler.
func unread(sql string) attempt {
	return func(ctx context.Context, tx pgx.Tx) error { _, err := tx.Query(ctx, sql); return err }
}

func closed(ctx context.Context, tx pgx.Tx) error { return tx.Conn().Close(ctx) }

// rawThenClosed holds the connection itself, so that closing it is not told from
// losing it.
func rawThenClosed(sql string) attempt {
	return func(ctx context.Context, tx pgx.Tx) error {
		conn := tx.Conn()
		_, _ = conn.Exec(ctx, sql)
		return conn.Close(ctx)
	}
}

// selfCommitted are handlers that commit and then hide it: they begin another
// transaction, lose their connection, overrun, or roll back.
var selfCommitted = map[string]attempt{
	"commit; begin, and overruns":                   inTurn(execute("commit; begin"), untilTheLimit),
	"commit and chain, and overruns":                inTurn(execute("commit and chain"), untilTheLimit),
	"commit; pg_sleep, cut by the limit":            inTurn(execute("commit; select pg_sleep(60)"), untilTheLimit),
	"commit in a Query that is left open, overruns": inTurn(unread("commit"), untilTheLimit),
	"commit; pg_sleep, cut by its context":          cut("commit; select pg_sleep(60)"),
	"commit; pg_sleep, with a context of its own": func(_ context.Context, tx pgx.Tx) error {
		return execute("commit; select pg_sleep(60)")(context.Background(), tx)
	},
	"raw commit and begin, and overruns":           inTurn(raw("commit"), raw("begin"), untilTheLimit),
	"raw commit, and overruns":                     inTurn(raw("commit"), untilTheLimit),
	"commit; begin, and the connection is closed":  inTurn(execute("commit; begin"), closed),
	"commit; begin, and a statement is cut":        inTurn(execute("commit; begin"), cut("select pg_sleep(60)")),
	"raw commit; begin, and the connection closed": rawThenClosed("commit; begin"),
	"raw commit, and the connection closed":        rawThenClosed("commit"),
	"commit; begin and then rollback":              inTurn(execute("commit; begin"), execute("rollback")),
	"commit and then rollback":                     inTurn(execute("commit"), execute("rollback")),
	"batch of commit and begin, and rollback":      inTurn(batched("commit", "begin"), execute("rollback")),
	"batch of commit, begin and rollback":          batched("commit", "begin", "rollback"),
	"raw commit and then rollback":                 inTurn(raw("commit"), execute("rollback")),
	"raw commit; begin and then rollback":          inTurn(raw("commit; begin"), execute("rollback")),
	"raw commit; begin and then Rollback":          inTurn(raw("commit; begin"), func(ctx context.Context, tx pgx.Tx) error { return tx.Rollback(ctx) }),
	"commit and chain; select and then rollback":   inTurn(execute("commit and chain; select 1"), execute("rollback")),
	"end; begin and then rollback":                 inTurn(execute("end; begin"), execute("rollback")),
	"a comment, commit; begin and then rollback":   inTurn(execute("/* done */ commit; begin"), execute("rollback")),
	"a string, commit; begin and then rollback":    inTurn(execute("select ';'; commit; begin"), execute("rollback")),
}

func TestD6_whatAHandlerHasCommittedIsNeverCommittedAgain(t *testing.T) {
	for name, do := range selfCommitted {
		for _, status := range []int{201, 422} {
			t.Run(fmt.Sprint(name, ", ", status), func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				var runs atomic.Int64
				answered := make(chan struct{})
				r.handle("/x", idemhttp.Route{Limit: 500 * time.Millisecond}, func(w http.ResponseWriter, req *http.Request) {
					runs.Add(1)
					if err := insertOrder(req); err != nil {
						panic(err)
					}
					_ = do(context.WithValue(req.Context(), givenUp{}, answered), idem.Tx(req.Context()))
					w.WriteHeader(status)
				})
				r.serve()
				first := r.send(post("/x", "k", "{}"))
				close(answered)
				r.want(first, 409, "outcome-unknown")
				for range 2 {
					r.want(r.send(post("/x", "k", "{}")), 409, "outcome-unknown")
				}
				r.wantRows("select count(*) from orders", 1)
				r.wantState("k", "unknown")
				r.wantRuns(&runs, 1)
				eventually(t, "the pool's slot is free", func() bool { return r.pool.Stat().AcquiredConns() == 0 })
			})
		}
	}
}

// harmless are handlers that look as if they had committed and have not: their
// connection is lost or their time is over, and nothing of them is there.
var harmless = map[string]attempt{
	"reads on the connection itself, and overruns": inTurn(raw("select 1"), untilTheLimit),
	"reads on the connection itself, and loses it": rawThenClosed("select 1"),
	"a DO block, on a lost connection":             cut("do $$ begin perform pg_sleep(60); end $$"),
	"a DO block of several lines, likewise":        cut("do $body$\nbegin\n  perform pg_sleep(60);\nend;\n$body$; select 1"),
	"a CASE, on a lost connection":                 cut("select case when true then 1 end; select pg_sleep(60)"),
	"a string that says commit, likewise":          cut("select 'x; commit; '; select pg_sleep(60)"),
	"a comment that says commit, likewise":         cut("select 1; -- ; commit;\nselect pg_sleep(60)"),
	"a DO block, and overruns":                     cut("do $$ begin perform pg_sleep(60); end; $$"),
}

func TestD6_whatHasNotCommittedLeavesTheKeyFree(t *testing.T) {
	for name, do := range harmless {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			var healthy atomic.Bool
			answered := make(chan struct{})
			r.handle("/x", idemhttp.Route{Limit: 300 * time.Millisecond}, func(w http.ResponseWriter, req *http.Request) {
				if err := insertOrder(req); err != nil {
					panic(err)
				}
				if !healthy.Load() {
					_ = do(context.WithValue(req.Context(), givenUp{}, answered), idem.Tx(req.Context()))
				}
				w.WriteHeader(201)
			})
			r.serve()
			first := r.send(post("/x", "k", "{}"))
			close(answered)
			r.want(first, 503, "unavailable")
			r.wantFree()
			r.wantRows("select count(*) from orders", 0)
			healthy.Store(true)
			r.want(r.send(post("/x", "k", "{}")), 201, "")
			r.wantRows("select count(*) from orders", 1)
		})
	}
}
