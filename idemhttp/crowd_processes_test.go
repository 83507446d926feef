//go:build !idem_nolocks

package idemhttp_test

import (
	"testing"

	"github.com/idem-go/idem/internal/pgtest"
)

func TestC4_aThousandDuplicatesOverTwoProcesses(t *testing.T) {
	url := pgtest.NewURL(t)
	a, b := newCrowded(t, url), newCrowded(t, url)
	first := a.begin(post("/slow", "k", "201"))
	a.inside(t)
	here, there := a.beginMany(500, post("/slow", "k", "201")), b.beginMany(500, post("/slow", "k", "201"))
	a.waiters("k", 500)
	b.waiters("k", 499) // one of them asks the database for all
	for _, p := range []*crowded{a, b} {
		p.wantOneConnection()
	}
	a.others(50, "a")
	b.others(50, "b")
	a.release()
	one := <-first
	a.want(one, 201, "")
	wantCrowd(t, here, one.body)
	wantCrowd(t, there, one.body)
	a.wantRows("select count(*) from orders", 1+2*50)
	if n := b.runs.Load(); n != 0 {
		t.Errorf("the other process ran the handler %d times, want never", n)
	}
}
