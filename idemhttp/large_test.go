package idemhttp_test

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem/idemhttp"
)

// sized serves an order and an answer with as many bytes as the path's last
// part says, of which 100 may be stored and 1,000 held.
func sized(r *rig, runs *atomic.Int64, before func()) {
	r.handle("/sized/{n}", idemhttp.Route{MaxStored: 100, MaxHeld: 1000}, func(w http.ResponseWriter, req *http.Request) {
		runs.Add(1)
		if err := insertOrder(req); err != nil {
			panic(err)
		}
		before()
		n, _ := strconv.Atoi(req.PathValue("n"))
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusCreated)
		for range n { // whether a write was refused is not looked at
			_, _ = w.Write([]byte("x"))
		}
	})
}

func TestP5_answerTooLargeToStoreIsGivenOnce(t *testing.T) {
	r := newRig(t)
	var runs atomic.Int64
	sized(r, &runs, func() {})
	r.serve()

	for _, key := range []string{"fits", "fits"} {
		got := r.send(post("/sized/100", key, ""))
		r.want(got, 201, "")
		if got.body != strings.Repeat("x", 100) {
			t.Errorf("got %q", got.body)
		}
	}
	first := r.send(post("/sized/101", "large", ""))
	r.want(first, 201, "")
	if first.body != strings.Repeat("x", 101) {
		t.Errorf("the first caller got %d bytes, want 101", len(first.body))
	}
	for range 2 {
		r.want(r.send(post("/sized/101", "large", "")), 409, "answer-withheld")
	}
	r.want(r.send(post("/sized/102", "large", "")), 409, "key-mismatch")
	r.wantState("large", "withheld")
	r.wantRows("select count(*) from orders", 2)
	if n := runs.Load(); n != 2 {
		t.Errorf("the handler ran %d times, want 2", n)
	}
}

func TestP5_answerTooLargeToHoldIsRolledBack(t *testing.T) {
	r := newRig(t)
	var runs atomic.Int64
	sized(r, &runs, func() {})
	r.serve()

	r.want(r.send(post("/sized/1000", "held", "")), 201, "")
	for range 2 {
		r.want(r.send(post("/sized/1001", "k", "")), 500, "not-applied")
	}
	r.wantRows("select count(*) from idem.idempotency_keys where key = 'k'", 0)
	r.wantRows("select count(*) from orders", 1)
	if n := runs.Load(); n != 3 {
		t.Errorf("the handler ran %d times, want 3: a key that is free runs again", n)
	}
	eventually(t, "the buffers are given back", func() bool { return r.guard.Buffered() == 0 })
}

func TestP5_largeRefusalIsWithheldAndItsRowsAreGone(t *testing.T) {
	r := newRig(t)
	r.handle("/x", idemhttp.Route{MaxStored: 10}, func(w http.ResponseWriter, req *http.Request) {
		if err := insertOrder(req); err != nil {
			panic(err)
		}
		http.Error(w, strings.Repeat("x", 20), http.StatusConflict)
	})
	r.serve()
	if got := r.send(post("/x", "k", "")); got.status != 409 || got.problem() != "" {
		t.Errorf("the first got %d %q", got.status, got.body)
	}
	r.want(r.send(post("/x", "k", "")), 409, "answer-withheld")
	r.wantRows("select count(*) from orders", 0)
}

func TestC9_waitersOfAnAnswerTooLargeAreToldSo(t *testing.T) {
	r := newRig(t)
	var runs atomic.Int64
	var g *gate
	sized(r, &runs, func() { g.pass() })
	r.serve()
	g = newGate(t)

	first := r.begin(post("/sized/101", "k", ""))
	g.inside(t)
	others := r.beginMany(5, post("/sized/101", "k", ""))
	r.waiters("k", 5)
	g.release()
	r.want(<-first, 201, "")
	for _, other := range others {
		r.want(<-other, 409, "answer-withheld")
	}
	if n := runs.Load(); n != 1 {
		t.Errorf("the handler ran %d times, want once", n)
	}
}
