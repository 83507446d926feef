package idemhttp_test

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/idem-go/idem/idemhttp"
)

// A handler that returns after its limit is as late as one that never returns,
// whichever the guard sees first.
func TestD11_handlerThatReturnsAfterItsLimitIsAlwaysUnavailable(t *testing.T) {
	r := newRig(t)
	r.handle("/x", idemhttp.Route{Limit: 15 * time.Millisecond}, func(w http.ResponseWriter, req *http.Request) {
		if err := insertOrder(req); err != nil && req.Context().Err() == nil {
			panic(err)
		}
		<-req.Context().Done() // its time is over now, and not a moment before
		status, _ := strconv.Atoi(req.URL.Query().Get("status"))
		w.WriteHeader(status)
	})
	r.serve()
	for i := range 100 {
		got := r.send(post(fmt.Sprint("/x?status=", []int{201, 409, 422}[i%3]), fmt.Sprint("k", i), "{}"))
		if got.err != nil || got.status != 503 || got.problem() != "unavailable" {
			t.Fatalf("run %d: got %d %q %v, want 503 unavailable", i, got.status, got.problem(), got.err)
		}
	}
	eventually(t, "the pool's slots are free", func() bool { return r.pool.Stat().AcquiredConns() == 0 })
	r.wantFree()
	r.wantRows("select count(*) from orders", 0)
}
