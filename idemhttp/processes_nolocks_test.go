//go:build idem_nolocks

package idemhttp_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
)

// Without advisory locks a duplicate in another process runs the handler beside
// the first, and the unique index lets one of them commit: the other's rows are
// rolled back, and all get the one answer.

// besideEachOther has one request at the gate of a and n duplicates behind one at
// the gate of b.
func besideEachOther(t *testing.T, a, b *slow, body string, n int) (first <-chan reply, duplicates []<-chan reply) {
	t.Helper()
	first = a.begin(post("/slow", "k", body))
	a.inside(t)
	duplicates = b.beginMany(n, post("/slow", "k", body))
	b.waiters("k", n-1)
	b.inside(t)
	return first, duplicates
}

func TestC7_duplicatesOfTwoProcessesCommitOnce(t *testing.T) {
	for _, winner := range []string{"the first", "the duplicate"} {
		t.Run(winner, func(t *testing.T) {
			a, b := twoProcesses(t, idemhttp.Route{Wait: time.Minute})
			first, duplicates := besideEachOther(t, a, b, "201", 20)
			var one reply
			if winner == "the first" {
				a.release()
				one = <-first
				b.release()
			} else {
				b.release()
				eventually(t, "the duplicate's answer", func() bool { return !b.guard.Flying("guest", "k") })
				a.release()
				one = <-first
			}
			if one.status != 201 || one.replayed() != (winner != "the first") {
				t.Errorf("the first got %d %q, replayed %v", one.status, one.body, one.replayed())
			}
			for _, d := range duplicates {
				if got := <-d; got.status != 201 || got.body != one.body {
					t.Errorf("a duplicate got %d %q, the first %q", got.status, got.body, one.body)
				}
			}
			if a.runs.Load() != 1 || b.runs.Load() != 1 {
				t.Errorf("the handlers ran %d and %d times, want once in each process", a.runs.Load(), b.runs.Load())
			}
			a.wantRows("select count(*) from orders", 1)
			a.wantRows("select count(*) from idem.idempotency_keys", 1)
		})
	}
}

func TestC6_mismatchOfTwoProcessesIsToldInTheEnd(t *testing.T) {
	a, b := twoProcesses(t, idemhttp.Route{Wait: time.Minute})
	first := a.begin(post("/slow", "k", "201"))
	a.inside(t)
	other := b.begin(post("/slow", "k", "202"))
	b.inside(t)
	a.release()
	a.want(<-first, 201, "")
	b.release()
	b.want(<-other, 409, "key-mismatch")
	if got := b.send(post("/slow", "k", "201")); got.status != 201 || !got.replayed() {
		t.Errorf("the repeat got %d, replayed %v", got.status, got.replayed())
	}
	a.wantRows("select count(*) from orders", 1)
}

func TestC9_eachProcessFreesTheKeyForItself(t *testing.T) {
	for _, status := range []string{"422", "503"} {
		t.Run(status, func(t *testing.T) {
			a, b := twoProcesses(t, idemhttp.Route{Wait: time.Minute})
			first, duplicates := besideEachOther(t, a, b, status, 10)
			a.release()
			b.release()
			for _, d := range append(duplicates, first) {
				if got := <-d; strconv.Itoa(got.status) != status || got.body != "run 1" || got.replayed() {
					t.Errorf("one got %d %q, replayed %v", got.status, got.body, got.replayed())
				}
			}
			if n := b.runs.Load(); n != 1 {
				t.Errorf("the other process ran the handler %d times, want once for all", n)
			}
			a.wantFree()
			a.wantRows("select count(*) from orders", 0)
		})
	}
}

func TestC4_aThousandDuplicatesOverTwoProcesses(t *testing.T) {
	url := pgtest.NewURL(t)
	a, b := newCrowded(t, url), newCrowded(t, url)
	first, there := besideEachOther(t, a.slow, b.slow, "201", 500)
	here := a.beginMany(500, post("/slow", "k", "201"))
	a.waiters("k", 500)
	for _, p := range []*crowded{a, b} {
		p.wantOneConnection()
	}
	a.others(50, "a")
	b.others(50, "b")
	a.release()
	one := <-first
	a.want(one, 201, "")
	b.release()
	wantCrowd(t, here, one.body)
	wantCrowd(t, there, one.body)
	a.wantRows("select count(*) from orders", 1+2*50)
}
