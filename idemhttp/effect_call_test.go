package idemhttp_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/admin"
	"github.com/idem-go/idem/idemhttp"
)

var onALease = idemhttp.Route{Lease: 2 * time.Second}

// E6: a bank that honours keys, cut at each point.
func TestE6_aKeyedCallIsRepeatedWithItsKeyUntilThereIsAResult(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		troubles []trouble
		calls    int
	}{
		"no trouble":                                         {nil, 1},
		"cut before the charge":                              {[]trouble{hangUpFirst}, 2},
		"cut after the charge":                               {[]trouble{hangUpAfter}, 2},
		"no answer before the charge":                        {[]trouble{stallFirst}, 2},
		"no answer after the charge":                         {[]trouble{stallAfter}, 2},
		"it fails after the charge":                          {[]trouble{failAfter}, 2},
		"again and again":                                    {[]trouble{hangUpAfter, stallAfter, failAfter, hangUpFirst}, 5},
		"refused after it had charged, which proves nothing": {[]trouble{hangUpAfter, refuse}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			b := newLedgerBank(t, false, c.troubles...)
			e := charge()
			e.Timeout = 300 * time.Millisecond
			r.paying(b, e, onALease)
			r.serve()
			first := r.send(post("/pay", "k", "{}"))
			r.want(first, 201, "")
			again := r.send(post("/pay", "k", "{}"))
			if again.body != first.body || !again.replayed() || first.body != "{\"number\":1}\n" {
				t.Errorf("the first got %q, the repeat %q, replayed %v", first.body, again.body, again.replayed())
			}
			b.want(c.calls, 1)
			r.wantRows("select count(*) from orders", 1)
			status, downstream, calls := r.effect()
			if status != "applied" || calls != c.calls || downstream != <-b.called {
				t.Errorf("the effect is %s after %d calls with %s", status, calls, downstream)
			}
		})
	}
}

// What the handler's time is too short for goes on with the retry.
func TestE6_aKeyedCallGoesOnWithTheRetry(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := newLedgerBank(t, false, stallAfter, hangUpFirst, refuse)
	r.paying(b, charge(), idemhttp.Route{Lease: 2 * time.Second, Limit: 600 * time.Millisecond})
	r.serve()
	s := post("/pay", "k", "{}")
	var got reply
	eventually(t, "an answer", func() bool {
		got = r.send(s)
		if got.status != 201 && got.problem() != "outcome-unknown" && got.problem() != "unavailable" {
			t.Fatalf("got %d %s", got.status, got.body)
		}
		return got.status == 201
	})
	b.want(4, 1)
	r.wantRows("select count(*) from orders", 1)
	r.wantEffect("applied")
	r.want(r.send(post("/pay", "k", `{"other":1}`)), 409, "key-mismatch")
}

func TestE6_aProofOfNothingLetsTheEffectStartAgain(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]idem.Effect{"keyed": charge(), "keyless": keyless()} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			b := newLedgerBank(t, name == "keyless", refuse)
			r.paying(b, e, onALease)
			r.serve()
			r.want(r.send(post("/pay", "declined", "{}")), 402, "")
			r.wantEffect("absent")
			_, before, _ := r.effect()
			r.want(r.send(post("/pay", "declined", "{}")), 402, "") // remembered: no call
			b.want(1, 0)
			r.want(r.send(post("/pay", "another", "{}")), 201, "")
			if _, after, _ := r.effect(); after != before {
				t.Errorf("the downstream key was %s and is %s", before, after)
			}
			b.want(2, 1)
			r.wantEffect("applied")
		})
	}
}

// E7: a bank that honours no key is called once, whatever becomes of the call.
func TestE7_aKeylessCallIsNeverRepeatedByItself(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		meets   trouble
		charges int64
	}{
		"hangs up before it charges":    {hangUpFirst, 0},
		"hangs up after it has charged": {hangUpAfter, 1},
		"does not answer":               {stallFirst, 0},
		"charges and does not answer":   {stallAfter, 1},
		"fails after it has charged":    {failAfter, 1},
	} {
		for _, settled := range []admin.Status{admin.StatusApplied, admin.StatusAbsent} {
			t.Run(fmt.Sprint(name, ", settled as ", settled), func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				b := newLedgerBank(t, true, c.meets)
				e := keyless()
				e.Timeout = 300 * time.Millisecond
				r.paying(b, e, onALease)
				r.serve()
				for range 3 {
					got := r.send(post("/pay", "k", "{}"))
					r.want(got, 409, "outcome-unknown")
					r.want(r.send(post("/pay", "k", `{"other":1}`)), 409, "key-mismatch")
					r.want(r.send(post("/pay", "other", "{}")), 409, "outcome-unknown")
				}
				b.want(1, c.charges)
				r.wantEffect("unknown")
				r.wantRows("select count(*) from orders", 0)
				if n := r.effectResults()[idem.EffectUnknown]; n != 6 {
					t.Errorf("%d events say unknown, want 6", n)
				}
				r.settle(settled)
				calls := 1
				if settled == admin.StatusAbsent {
					calls = 2
				}
				end := r.send(post("/pay", "k", "{}"))
				r.want(end, 201, "")
				if settled == admin.StatusApplied && end.body != "{\"number\":77}\n" {
					t.Errorf("the retry got %q, want the operator's result", end.body)
				}
				again := r.send(post("/pay", "k", "{}"))
				if again.body != end.body || !again.replayed() {
					t.Errorf("the repeat got %q, replayed %v", again.body, again.replayed())
				}
				b.want(calls, c.charges+int64(calls-1))
				r.wantRows("select count(*) from orders", 1)
				r.wantRows("select count(*) from idem.audit where actor = 'ops' and reason = 'the bank said so'", 1)
			})
		}
	}
}

// settle settles the effect of charge as an operator does.
func (r *rig) settle(as admin.Status) {
	r.t.Helper()
	s := admin.Settlement{Scope: "shop", Key: "charge:1", As: as, Actor: "ops", Reason: "the bank said so"}
	if as == admin.StatusApplied {
		s.Result = []byte(`{"number":77}`)
	}
	eventually(r.t, "the effect is settled", func() bool {
		_, err := admin.SettleEffect(context.Background(), r.db, s)
		return err == nil
	})
}

func TestE7_aPanicInAKeylessCallIsUnknown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var outside recoverer
	r.wrap = outside.wrap
	calls := 0
	r.handle("/pay", onALease, func(w http.ResponseWriter, req *http.Request) {
		_, err := idem.Call(req.Context(), keyless(), func(context.Context, string) (receipt, error) {
			calls++
			panic("boom")
		})
		http.Error(w, err.Error(), http.StatusInternalServerError)
	})
	r.serve()
	if got := r.send(post("/pay", "k", "{}")); got.status != http.StatusTeapot {
		t.Errorf("got %d, want the recoverer's answer", got.status)
	}
	r.wantEffect("unknown")
	r.want(r.send(post("/pay", "k", "{}")), 409, "outcome-unknown")
	if calls != 1 {
		t.Errorf("%d calls, want one", calls)
	}
}

// E12: the window of a key is over.
func TestE12_aKeyedCallBeyondItsWindowIsUnknown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := newLedgerBank(t, false, stallAfter)
	r.paying(b, charge(), idemhttp.Route{Lease: 2 * time.Second, Limit: 400 * time.Millisecond})
	r.serve()
	got := r.send(post("/pay", "k", "{}"))
	if got.problem() != "outcome-unknown" && got.problem() != "unavailable" {
		t.Fatalf("got %d %s", got.status, got.body)
	}
	r.wantEffect("started")
	r.ageEffects(time.Hour)
	for range 2 {
		r.want(r.send(post("/pay", "k", "{}")), 409, "outcome-unknown")
		r.wantEffect("unknown")
	}
	b.want(1, 1)
	r.settle(admin.StatusApplied)
	r.want(r.send(post("/pay", "k", "{}")), 201, "")
	b.want(1, 1)
}

// A window that is over while the handler repeats ends the repeating.
func TestE12_theWindowEndsTheRepetitions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := newLedgerBank(t, false, hangUpAfter, hangUpAfter, hangUpAfter, hangUpAfter, hangUpAfter, hangUpAfter, hangUpAfter, hangUpAfter,
		hangUpAfter, hangUpAfter, hangUpAfter, hangUpAfter, hangUpAfter, hangUpAfter, hangUpAfter, hangUpAfter, hangUpAfter, hangUpAfter)
	e := charge()
	e.Provider = idem.Keyed(time.Second)
	r.paying(b, e, onALease)
	r.serve()
	r.want(r.send(post("/pay", "k", "{}")), 409, "outcome-unknown")
	r.wantEffect("unknown")
	_, _, calls := r.effect()
	r.want(r.send(post("/pay", "k", "{}")), 409, "outcome-unknown")
	b.want(calls, 1)
}

// E14: absence is not believed while the lost owner's call may be under way.
func TestE14_absenceIsBelievedOnceTheCallCannotBeUnderWay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := newLedgerBank(t, true, hangUpFirst)
	e := keyless()
	asked := make(chan string, 10)
	e.Reconcile = func(_ context.Context, key string) (idem.Evidence, error) {
		asked <- key
		return idem.Missing(), nil
	}
	e.Timeout = 20 * time.Second
	r.paying(b, e, onALease)
	r.serve()
	r.want(r.send(post("/pay", "k", "{}")), 409, "outcome-unknown")
	for range 3 {
		r.want(r.send(post("/pay", "k", "{}")), 409, "outcome-unknown")
		r.wantEffect("unknown")
		if key, sent := <-asked, <-b.called; key != sent {
			t.Errorf("asked for %s, the call was sent with %s", key, sent)
		} else {
			b.called <- sent
		}
	}
	b.want(1, 0)
	r.ageEffects(21 * time.Second)
	r.want(r.send(post("/pay", "k", "{}")), 201, "")
	b.want(2, 1)
	r.wantEffect("applied")
}

func TestE14_evidenceOfAResultIsBelievedAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := newLedgerBank(t, true, hangUpAfter)
	e := keyless()
	e.Reconcile = func(context.Context, string) (idem.Evidence, error) { return idem.Found(receipt{1}), nil }
	r.paying(b, e, onALease)
	r.serve()
	r.want(r.send(post("/pay", "k", "{}")), 409, "outcome-unknown")
	got := r.send(post("/pay", "k", "{}"))
	r.want(got, 201, "")
	if got.body != "{\"number\":1}\n" {
		t.Errorf("got %q", got.body)
	}
	b.want(1, 1)
	r.wantRows("select count(*) from orders", 1)
}

func TestE14_noEvidenceLeavesItUnknown(t *testing.T) {
	t.Parallel()
	for name, reconcile := range map[string]func(context.Context, string) (idem.Evidence, error){
		"an error":     func(context.Context, string) (idem.Evidence, error) { return idem.Missing(), context.DeadlineExceeded },
		"nothing":      func(context.Context, string) (idem.Evidence, error) { return idem.Evidence{}, nil },
		"not a result": func(context.Context, string) (idem.Evidence, error) { return idem.Found(make(chan int)), nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			b := newLedgerBank(t, true, hangUpAfter)
			e := keyless()
			e.Reconcile = reconcile
			r.paying(b, e, onALease)
			r.serve()
			for range 3 {
				r.want(r.send(post("/pay", "k", "{}")), 409, "outcome-unknown")
			}
			r.ageEffects(time.Hour)
			r.want(r.send(post("/pay", "k", "{}")), 409, "outcome-unknown")
			r.wantEffect("unknown")
			b.want(1, 1)
		})
	}
}
