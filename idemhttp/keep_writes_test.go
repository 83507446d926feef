package idemhttp_test

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/jackc/pgx/v5"
)

// book takes the one slot; a second one is a unique violation.
func book(r *http.Request) error {
	_, err := idem.Tx(r.Context()).Exec(r.Context(), "insert into orders (customer, amount, slot) values (1, 1, 'noon')")
	return err
}

func TestP9_keepWritesKeepsTheRowsOfARefusalOnly(t *testing.T) {
	for _, c := range []struct{ status, rows, keys, runs int }{
		{402, 1, 1, 1}, {409, 1, 1, 1}, {410, 1, 1, 1}, // remembered refusals
		{201, 1, 1, 1}, {303, 1, 1, 1}, {422, 0, 0, 2}, {500, 0, 0, 2}, // anything else: as if it had not been said
	} {
		t.Run(strconv.Itoa(c.status), func(t *testing.T) {
			r := newRig(t)
			var runs atomic.Int64
			r.handle("/x", idemhttp.Route{}, func(w http.ResponseWriter, req *http.Request) {
				runs.Add(1)
				idem.KeepWrites(req.Context())
				if err := insertOrder(req); err != nil {
					panic(err)
				}
				http.Error(w, "declined", c.status)
			})
			r.serve()
			first, second := r.send(post("/x", "k", "")), r.send(post("/x", "k", ""))
			r.want(first, c.status, "")
			if second.status != c.status || second.body != first.body || second.replayed() != (c.keys == 1) {
				t.Errorf("the repeat got %d %q, replayed %v", second.status, second.body, second.replayed())
			}
			r.wantRows("select count(*) from orders", c.rows)
			r.wantRows("select count(*) from idem.idempotency_keys", c.keys)
			r.wantRuns(&runs, int64(c.runs))
		})
	}
}

func TestP9_keepWritesInAnAbortedTransactionIsNotApplied(t *testing.T) {
	r := newRig(t)
	if _, err := r.pool.Exec(t.Context(), "insert into orders (customer, amount, slot) values (9, 9, 'noon')"); err != nil {
		t.Fatal(err)
	}
	r.handle("/aborted", idemhttp.Route{}, func(w http.ResponseWriter, req *http.Request) {
		idem.KeepWrites(req.Context())
		if err := insertOrder(req); err != nil {
			panic(err)
		}
		fail409(w, book(req))
	})
	r.handle("/own-savepoint", idemhttp.Route{}, func(w http.ResponseWriter, req *http.Request) {
		idem.KeepWrites(req.Context())
		if err := insertOrder(req); err != nil {
			panic(err)
		}
		err := pgx.BeginFunc(req.Context(), idem.Tx(req.Context()), func(tx pgx.Tx) error {
			_, err := tx.Exec(req.Context(), "insert into orders (customer, amount, slot) values (1, 1, 'noon')")
			return err
		})
		fail409(w, err)
	})
	r.serve()
	for range 2 {
		r.want(r.send(post("/aborted", "k", "")), 500, "not-applied")
		r.wantFree()
		r.wantRows("select count(*) from orders", 1)
	}
	r.want(r.send(post("/own-savepoint", "k", "")), 409, "")
	r.wantRows("select count(*) from orders", 2)
	if got := r.send(post("/own-savepoint", "k", "")); got.status != 409 || !got.replayed() {
		t.Errorf("the repeat got %d, replayed %v, want 409, true", got.status, got.replayed())
	}
}
