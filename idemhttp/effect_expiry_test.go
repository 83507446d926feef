package idemhttp_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
)

// Q6 with a call: when the answer's time is over, and then its tombstone's, the request
// runs as new; its effect has been applied for ever.
func TestQ6_whatRunsAsNewSkipsItsEffect(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]idem.Effect{"keyed": charge(), "keyless": keyless()} {
		for _, swept := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/swept=%v", name, swept), func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				b := newLedgerBank(t, name == "keyless")
				r.paying(b, e, idemhttp.Route{Lease: second, TTL: time.Hour})
				r.serve()
				first := r.send(post("/pay", "k", "{}"))
				r.want(first, 201, "")
				r.age("k", 61*time.Minute)
				r.ageEffects(61 * time.Minute) // the window of its key is over, too
				r.sweep(swept, 0, 1)
				r.want(r.send(post("/pay", "k", "{}")), 409, "answer-expired")
				r.age("k", 90*24*time.Hour)
				r.ageEffects(90 * 24 * time.Hour)
				r.sweep(swept, 1, 0)
				anew := r.send(post("/pay", "k", "{}"))
				r.want(anew, 201, "")
				if anew.replayed() || anew.body != first.body {
					t.Errorf("got %q, replayed %v, want the first call's result %q in an answer of its own", anew.body, anew.replayed(), first.body)
				}
				b.want(1, 1)
				r.wantRows("select count(*) from orders", 2)
				if n := r.effectResults()[idem.EffectSkipped]; n != 1 {
					t.Errorf("%d effects were skipped, want one", n)
				}
			})
		}
	}
}
