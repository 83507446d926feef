package idemhttp_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/idem-go/idem/idemhttp"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A connection of the pool that dies while the handler is elsewhere is no reason to
// refuse: nothing has run on it.
func TestLease_finalTransactionBeginsOnALiveConnection(t *testing.T) {
	r := newRig(t)
	r.handle("/x", idemhttp.Route{Lease: 5 * time.Second}, func(w http.ResponseWriter, req *http.Request) {
		alive, err := r.pool.Acquire(req.Context())
		if err != nil {
			t.Error(err)
			return
		}
		defer alive.Release()
		_, err = alive.Exec(req.Context(), "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()")
		if err != nil {
			t.Error(err)
		}
		if err := insertOrder(req); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusCreated)
	})
	r.serve()
	warm := make([]*pgxpool.Conn, 3) // those that the pool will offer
	for i := range warm {
		conn, err := r.pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		warm[i] = conn
	}
	for _, conn := range warm {
		conn.Release()
	}
	r.want(r.send(post("/x", "k", "{}")), 201, "")
}
