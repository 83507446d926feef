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
	"github.com/idem-go/idem/internal/faultproxy"
	"github.com/idem-go/idem/internal/pgsql/effects"
	"github.com/idem-go/idem/internal/pgtest"
)

// absence is a case of a database that is away from one message on, for longer than a
// call waits for it.
type absence struct {
	effect idem.Effect
	from   func(faultproxy.Message) bool
	how    faultproxy.Action
	called bool // the bank was called by then
	back   bool // it is there again when what the call has come to was given up
}

// TestP12_theDatabaseIsAwayAroundACall: before the intention is committed nothing is
// called; after the call, what nobody has recorded is unknown, and only a key lets the
// retry find it out.
func TestP12_theDatabaseIsAwayAroundACall(t *testing.T) {
	long(t)
	t.Parallel()
	cases := map[string]absence{}
	for how, do := range map[string]faultproxy.Action{"hangs up": faultproxy.Cut(), "is silent": faultproxy.Drop()} {
		for name, e := range map[string]idem.Effect{"keyed": charge(), "keyless": keyless()} {
			e.Timeout = second
			cases[fmt.Sprint(name, ", it ", how, " before the intention")] = absence{e, begins(effects.Start), do, false, false}
			cases[fmt.Sprint(name, ", it ", how, " after the call")] = absence{e, begins(effects.Record), do, true, how == "is silent"}
		}
	}
	sideBySide(t, cases, func(t *testing.T, _ string, c absence) { c.try(t) })
}

func (c absence) try(t *testing.T) {
	url := pgtest.NewURL(t)
	proxy := newProxy(t, pgtest.Direct(t, url))
	a, b := rigOn(t, pgtest.Pool(t, proxy.URL())), rigOn(t, pgtest.Pool(t, url))
	honours := c.effect.Provider != idem.Provider{}
	bank := newLedgerBank(t, !honours)
	for _, p := range []*rig{a, b} {
		p.paying(bank, c.effect, idemhttp.Route{Lease: second, Wait: 20 * time.Second})
		p.serve()
	}
	gone := false
	away := proxy.Add(faultproxy.Rule{When: func(m faultproxy.Message) bool {
		gone = gone || c.from(m)
		return gone
	}, Times: -1, Do: c.how})
	begun := a.begin(post("/pay", "k", "{}"))
	comesBack := func() {
		away.Disarm()
		proxy.CutAll() // what is silent
	}
	if c.back {
		eventually(t, "the call is given up", func() bool { return a.effectResults()[idem.EffectUnknown] == 1 })
		a.wantCallsAgain(honours)
		comesBack()
	}
	first := <-begun
	comesBack()
	if !c.called {
		a.want(first, 503, "unavailable")
		bank.want(0, 0)
		b.wantRows("select count(*) from idem.applied_effects", 0)
		b.want(b.send(post("/pay", "k", "{}")), 201, "")
		bank.want(1, 1)
		return
	}
	a.want(first, 409, "outcome-unknown")
	b.wantEffect("started")
	if !honours {
		for range 3 {
			b.want(b.send(post("/pay", "k", "{}")), 409, "outcome-unknown")
			b.wantEffect("unknown")
		}
		bank.want(1, 1)
		b.wantRows("select count(*) from orders", 0)
		return
	}
	retry := b.send(post("/pay", "k", "{}"))
	b.want(retry, 201, "")
	again := b.send(post("/pay", "k", "{}"))
	if retry.replayed() || again.body != retry.body || !again.replayed() {
		t.Errorf("the retry got %q, replayed %v, and its repeat %q, replayed %v", retry.body, retry.replayed(), again.body, again.replayed())
	}
	bank.want(2, 1)
	b.wantEffect("applied")
	b.wantRows("select count(*) from orders", 1)
}

// D3 around a call: a crash before the intention calls nothing, and a server that is
// there again before what a call has come to is given up costs nothing.
func TestD3_restartAroundACall(t *testing.T) {
	long(t)
	t.Parallel()
	s := newServer(t, nil)
	r := rigOn(t, pgtest.Pool(t, s.url()))
	var before, within *gate
	var calls atomic.Int64
	for path, e := range map[string]idem.Effect{"/keyed": charge(), "/keyless": keyless()} {
		r.handle(path, idemhttp.Route{Lease: second, Wait: 20 * time.Second}, func(w http.ResponseWriter, req *http.Request) {
			e := e
			e.Key = req.Header.Get("Idempotency-Key")
			if strings.HasSuffix(e.Key, ".before") {
				before.pass()
			}
			_, err := idem.Call(req.Context(), e, func(context.Context, string) (receipt, error) {
				n := calls.Add(1)
				within.pass()
				return receipt{n}, nil
			})
			if err == nil {
				err = insertOrder(req)
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusConflict)
				return
			}
			w.WriteHeader(http.StatusCreated)
		})
	}
	r.serve()
	before, within = newGate(t), newGate(t)
	var intending, calling []<-chan reply
	for _, path := range []string{"/keyed", "/keyless"} {
		intending = append(intending, r.begin(post(path, path+".before", "{}")))
		calling = append(calling, r.begin(post(path, path+".within", "{}")))
	}
	for range 2 {
		before.inside(t)
		within.inside(t)
	}
	s.crash()
	before.release()
	for _, got := range intending {
		r.want(<-got, 503, "unavailable")
	}
	if n := calls.Load(); n != 2 {
		t.Errorf("%d calls, want 2: none whose intention could not be committed", n)
	}
	within.release()
	s.start()
	for _, got := range calling {
		r.want(<-got, 201, "")
	}
	for _, path := range []string{"/keyed", "/keyless"} {
		r.want(r.send(post(path, path+".before", "{}")), 201, "")
	}
	r.wantRows("select count(*) from orders", 4)
	r.wantRows("select count(*) from idem.applied_effects where status = 'applied' and calls = 1", 4)
}
