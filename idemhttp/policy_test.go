package idemhttp_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem/idemhttp"
)

// answers serves an order and then the status that the body says.
func answers(runs *atomic.Int64) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		runs.Add(1)
		if err := insertOrder(r); err != nil {
			panic(err)
		}
		said, _ := io.ReadAll(r.Body)
		status, _ := strconv.Atoi(string(said))
		http.Error(w, "answer "+string(said), status)
	}
}

func TestP7_whatIsNotARefusalIsRolledBackAndFreesTheKey(t *testing.T) {
	r := newRig(t)
	var runs atomic.Int64
	r.handle("/x", idemhttp.Route{}, answers(&runs))
	r.serve()
	statuses := []string{"400", "401", "403", "404", "408", "422", "425", "429", "500", "502", "503", "504", "599"}
	for i, status := range statuses {
		runs.Store(0)
		for range 2 {
			if got := r.send(post("/x", "k"+status, status)); strconv.Itoa(got.status) != status || got.body != "answer "+status+"\n" || got.replayed() {
				t.Errorf("%s: got %d %q, replayed %v", status, got.status, got.body, got.replayed())
			}
		}
		r.wantRows("select count(*) from idem.idempotency_keys", i)
		r.wantRows("select count(*) from orders", i)
		r.want(r.send(post("/x", "k"+status, "201")), 201, "")
		if n := runs.Load(); n != 3 {
			t.Errorf("%s: the handler ran %d times, want 3", status, n)
		}
	}
}

func TestP8_refusalIsRemembered(t *testing.T) {
	for _, status := range []int{402, 409, 410} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			r := newRig(t)
			var runs atomic.Int64
			var accepted atomic.Bool
			r.handle("/x", idemhttp.Route{}, func(w http.ResponseWriter, req *http.Request) {
				n := runs.Add(1)
				if accepted.Load() {
					w.WriteHeader(http.StatusCreated)
					return
				}
				http.Error(w, fmt.Sprintf("refused, run %d", n), status)
			})
			r.serve()
			first := r.send(post("/x", "k", ""))
			accepted.Store(true)
			second := r.send(post("/x", "k", ""))
			if second.status != status || second.body != "refused, run 1\n" || second.body != first.body || first.replayed() || !second.replayed() {
				t.Errorf("first %d %q, repeat %d %q", first.status, first.body, second.status, second.body)
			}
			r.wantRuns(&runs, 1)
			r.want(r.send(post("/x", "another", "")), 201, "")
			if got := r.outcomes(); got["refused"] != 1 || got["replayed"] != 1 || got["executed"] != 1 {
				t.Errorf("outcomes are %v", got)
			}
		})
	}
}

func TestP9_rowsOfARefusalAreGone(t *testing.T) {
	r := newRig(t)
	var runs atomic.Int64
	r.handle("/x", idemhttp.Route{}, answers(&runs))
	r.serve()
	for _, status := range []string{"402", "409", "410"} {
		first, second := r.send(post("/x", status, status)), r.send(post("/x", status, status))
		if strconv.Itoa(first.status) != status || second.status != first.status || second.body != first.body || !second.replayed() {
			t.Errorf("%s: first %d, repeat %d, replayed %v", status, first.status, second.status, second.replayed())
		}
		r.wantState(status, "answered")
	}
	r.wantRows("select count(*) from orders", 0)
	r.wantRuns(&runs, 3)
}

func TestP9_uniqueViolationTurnedInto409IsRemembered(t *testing.T) {
	r := newRig(t)
	var runs atomic.Int64
	r.handle("/book", idemhttp.Route{}, func(w http.ResponseWriter, req *http.Request) {
		runs.Add(1)
		if err := insertOrder(req); err != nil {
			panic(err)
		}
		if !fail409(w, book(req)) {
			w.WriteHeader(http.StatusCreated)
		}
	})
	r.serve()
	r.want(r.send(post("/book", "a", "")), 201, "")
	first, second := r.send(post("/book", "b", "")), r.send(post("/book", "b", ""))
	r.want(first, 409, "")
	if !strings.Contains(first.body, "23505") || second.body != first.body || second.status != 409 || !second.replayed() {
		t.Errorf("first %q, repeat %d %q, replayed %v", first.body, second.status, second.body, second.replayed())
	}
	r.wantRows("select count(*) from orders", 2)
	r.wantRuns(&runs, 2)
}

func TestPolicies_overrideTheDefaults(t *testing.T) {
	r := newRig(t)
	var runs atomic.Int64
	r.handle("/x", idemhttp.Route{Policies: map[int]idemhttp.Policy{
		404: idemhttp.RollbackAndStore, 409: idemhttp.RollbackAndFree, 422: idemhttp.CommitAndStore,
		202: idemhttp.RollbackAndFree, 503: idemhttp.RollbackAndStore,
	}}, answers(&runs))
	r.serve()
	rows, remembered := 0, 0
	for _, c := range []struct {
		status    string
		row, keep int
	}{{"404", 0, 1}, {"409", 0, 0}, {"422", 1, 1}, {"202", 0, 0}, {"503", 0, 1}, {"410", 0, 1}, {"201", 1, 1}, {"400", 0, 0}} {
		rows, remembered = rows+c.row, remembered+c.keep
		runs.Store(0)
		first, second := r.send(post("/x", c.status, c.status)), r.send(post("/x", c.status, c.status))
		if strconv.Itoa(first.status) != c.status || second.status != first.status || second.body != first.body {
			t.Errorf("%s: first %d, repeat %d", c.status, first.status, second.status)
		}
		if want := int64(2 - c.keep); runs.Load() != want || second.replayed() != (c.keep == 1) {
			t.Errorf("%s: ran %d times, want %d; replayed %v", c.status, runs.Load(), want, second.replayed())
		}
		r.wantRows("select count(*) from orders", rows)
		r.wantRows("select count(*) from idem.idempotency_keys", remembered)
	}
}
