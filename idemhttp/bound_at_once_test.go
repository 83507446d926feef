package idemhttp_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5"
)

// What the handler has committed is bound while it still runs: a crash after its
// COMMIT leaves no free key.
func TestD6_commitThatIsSeenIsBoundBeforeTheHandlerReturns(t *testing.T) {
	for name, do := range map[string]attempt{
		"commit":           execute("commit"),
		"commit and chain": execute("commit and chain"),
		"commit; select":   execute("commit; select 1"),
		"Query":            func(ctx context.Context, tx pgx.Tx) error { return tx.QueryRow(ctx, "commit").Scan() },
		"SendBatch":        batched("commit"),
		"a batch's tag": func(ctx context.Context, tx pgx.Tx) error {
			b := &pgx.Batch{}
			b.Queue("commit")
			b.Queue("begin")
			results := tx.SendBatch(ctx, b)
			_, err := results.Exec()
			_ = results.Close()
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			url := pgtest.NewURL(t)
			first, second := rigOn(t, pgtest.Pool(t, url)), rigOn(t, pgtest.Pool(t, url))
			var g *gate
			first.handle("/x", idemhttp.Route{}, func(w http.ResponseWriter, req *http.Request) {
				if err := insertOrder(req); err != nil {
					panic(err)
				}
				_ = do(req.Context(), idem.Tx(req.Context()))
				g.pass()
				w.WriteHeader(201)
			})
			second.handle("/x", idemhttp.Route{}, func(_ http.ResponseWriter, req *http.Request) {
				if err := insertOrder(req); !second.lazy || !errors.Is(err, idem.ErrAnswered) {
					t.Errorf("the handler ran again: %v", err)
				}
			})
			first.serve()
			second.serve()
			g = newGate(t)
			running := first.begin(post("/x", "k", "{}"))
			g.inside(t)
			first.wantState("k", "unknown")
			second.want(second.send(post("/x", "k", "{}")), 409, "outcome-unknown")
			g.release()
			first.want(<-running, 409, "outcome-unknown")
			first.wantRows("select count(*) from orders", 1)
		})
	}
}
