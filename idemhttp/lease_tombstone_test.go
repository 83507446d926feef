package idemhttp_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
)

// wantSwept sweeps, and wants to have deleted so many rows.
func (r *rig) wantSwept(deleted, stripped int64) {
	r.t.Helper()
	r.sweep(true, deleted, stripped)
}

// Q6 on a lease: the bare key is kept for 90 days.
func TestQ6_onALeaseATombstoneOfNinetyDaysIsTheDefault(t *testing.T) {
	t.Parallel()
	for _, swept := range []bool{false, true} {
		r, runs := ordersRig(t, idemhttp.Route{Lease: 2 * time.Second, TTL: time.Hour})
		first := r.send(post("/orders", "k", body))
		r.want(first, 201, "")
		r.wantRows("select count(*) from idem.idempotency_keys where tombstone_until = expires_at + interval '90 days'", 1)
		r.age("k", 59*time.Minute)
		r.sweep(swept, 0, 0)
		if again := r.send(post("/orders", "k", body)); again.body != first.body || !again.replayed() {
			t.Errorf("after 59 minutes: %d %q", again.status, again.body)
		}
		r.age("k", 2*time.Minute)
		r.sweep(swept, 0, 1)
		r.want(r.send(post("/orders", "k", body)), 409, "answer-expired")
		r.want(r.send(post("/orders", "k", `{"customer_id":9,"amount":9}`)), 409, "key-mismatch")
		r.age("k", 89*24*time.Hour)
		r.sweep(swept, 0, 0)
		r.want(r.send(post("/orders", "k", body)), 409, "answer-expired")
		r.age("k", 24*time.Hour)
		r.sweep(swept, 1, 0)
		anew := r.send(post("/orders", "k", body))
		r.want(anew, 201, "")
		if anew.replayed() || runs.Load() != 2 {
			t.Errorf("after its tombstone: replayed %v, %d runs", anew.replayed(), runs.Load())
		}
	}
}

// abandoned leaves a claim on k: of a call that is unknown, or of a process that has
// gone before any effect.
func abandoned(t *testing.T, bound bool) (r *rig, runs *atomic.Int64) {
	r, runs = newRig(t), new(atomic.Int64)
	b := newLedgerBank(t, true, hangUpAfter)
	r.handle("/pay", idemhttp.Route{Lease: 2 * time.Second, TTL: time.Hour}, func(w http.ResponseWriter, req *http.Request) {
		runs.Add(1)
		if bound {
			_, _ = idem.Call(req.Context(), keyless(), b.charge)
		}
		w.WriteHeader(http.StatusCreated)
	})
	r.serve()
	if bound {
		r.want(r.send(post("/pay", "k", "{}")), 409, "outcome-unknown")
		return r, runs
	}
	r.want(r.send(post("/pay", "k", "{}")), 201, "")
	_, err := r.pool.Exec(context.Background(), `update idem.idempotency_keys set state = 'claimed', bound = false, fence = gen_random_uuid(),
		lease_until = clock_timestamp() - interval '1 second', response_status = null, response_headers = null, response_body = null,
		tombstone_until = null, committed = null`)
	if err != nil {
		t.Fatal(err)
	}
	return r, runs
}

func TestTombstone_abandonedClaimIsKeptUntilItsTTLAfterTheLastLease(t *testing.T) {
	t.Parallel()
	r, runs := abandoned(t, true)
	r.settle("applied")
	r.age("k", 59*time.Minute)
	r.wantSwept(0, 0)
	r.wantState("k", "claimed")
	r.want(r.send(post("/pay", "k", `{"other":1}`)), 409, "key-mismatch")
	r.age("k", 2*time.Minute)
	r.wantSwept(1, 0)
	r.want(r.send(post("/pay", "k", `{"other":1}`)), 201, "") // the effect is still applied once
	if runs.Load() != 2 {
		t.Errorf("%d runs, want 2", runs.Load())
	}
	r.wantRows("select count(*) from idem.applied_effects where calls = 1", 1)
}

func TestTombstone_claimOfAnUnsettledEffectIsNeverSwept(t *testing.T) {
	long(t)
	t.Parallel()
	r, _ := abandoned(t, true)
	r.age("k", 10*365*24*time.Hour)
	for range 2 {
		r.wantSwept(0, 0)
		r.want(r.send(post("/pay", "k", `{"other":1}`)), 409, "key-mismatch")
	}
	r.want(r.send(post("/pay", "k", "{}")), 409, "outcome-unknown") // which holds it again
	r.age("k", 10*365*24*time.Hour)
	r.settle("absent")
	r.wantSwept(1, 0)
	r.wantFree()
}

func TestTombstone_anotherRequestMayHaveAnAbandonedKeyThatIsNotBound(t *testing.T) {
	t.Parallel()
	r, runs := abandoned(t, false)
	r.wantSwept(0, 0)
	got := r.send(post("/pay", "k", `{"other":1}`))
	r.want(got, 201, "")
	if got.replayed() || runs.Load() != 2 {
		t.Errorf("replayed %v, %d runs", got.replayed(), runs.Load())
	}
	r.want(r.send(post("/pay", "k", "{}")), 409, "key-mismatch")
	r.want(r.send(post("/pay", "k", `{"other":1}`)), 201, "")
}
