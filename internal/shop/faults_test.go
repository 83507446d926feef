package shop_test

import (
	"testing"
	"time"

	"github.com/idem-go/idem/internal/shop"
)

func TestFaults_headersAreIgnoredUnlessAskedFor(t *testing.T) {
	r := open(t, shop.Config{})
	for _, header := range [][]string{{"X-Demo-Fail", "panic"}, {"X-Demo-Fail", "nonsense"}, {"X-Demo-Delay", "nonsense"}} {
		got := r.must("POST", "/orders", articleOrder, "Idempotency-Key", header[1]+header[0], header[0], header[1])
		if got.status != 201 {
			t.Errorf("%v: got %d %s, want 201", header, got.status, got.body)
		}
	}
}

func TestFaults_refusesWhatItDoesNotKnow(t *testing.T) {
	r := open(t, shop.Config{Faults: true})
	for _, header := range [][]string{{"X-Demo-Fail", "nonsense"}, {"X-Demo-Delay", "nonsense"}, {"X-Demo-Delay", "-1s"}, {"X-Demo-Delay", "61s"}} {
		got := r.must("POST", "/orders", articleOrder, "Idempotency-Key", "k", header[0], header[1])
		if got.status != 400 || got.code(t) != "fault-invalid" {
			t.Errorf("%v: got %d %s, want 400 fault-invalid", header, got.status, got.body)
		}
	}
	r.wantRows("shop.orders", 0)
}

func TestFaults_delayComesBeforeTheAnswer(t *testing.T) {
	r := open(t, shop.Config{Faults: true})
	began := time.Now()
	got := r.must("POST", "/orders", articleOrder, "Idempotency-Key", "k", "X-Demo-Delay", "200ms")
	if took := time.Since(began); got.status != 201 || took < 200*time.Millisecond {
		t.Errorf("got %d after %s, want 201 after at least 200ms", got.status, took)
	}
}

func TestFaults_failureRollsBackAndFreesTheKey(t *testing.T) {
	for _, fail := range []string{"panic", "500"} {
		t.Run(fail, func(t *testing.T) {
			r := open(t, shop.Config{Faults: true})
			got := r.must("POST", "/orders", articleOrder, "Idempotency-Key", "k", "X-Demo-Fail", fail)
			if got.status != 500 {
				t.Errorf("got %d %s, want 500", got.status, got.body)
			}
			got.code(t)
			r.wantRows("shop.orders", 0)
			r.wantRows("idem.idempotency_keys", 0)
			if got := r.must("POST", "/orders", articleOrder, "Idempotency-Key", "k"); got.status != 201 {
				t.Errorf("the retry: got %d %s, want 201", got.status, got.body)
			}
		})
	}
}

func TestFaults_droppedClientCollectsItsAnswer(t *testing.T) {
	for _, fail := range []string{"drop-before-commit", "drop-after-commit"} {
		t.Run(fail, func(t *testing.T) {
			r := open(t, shop.Config{Faults: true})
			// The delay follows the cut, so that the retry meets the work.
			got, err := r.send("POST", "/orders", articleOrder, "Idempotency-Key", "k", "X-Demo-Fail", fail, "X-Demo-Delay", "300ms")
			if err == nil {
				t.Errorf("got %d %s, want a broken connection", got.status, got.body)
			}
			retry := r.must("POST", "/orders", articleOrder, "Idempotency-Key", "k")
			want := `{"id":1,"customer_id":123,"amount":1500,"status":"new"}`
			if retry.status != 201 || retry.body != want || retry.header.Get("Idempotent-Replayed") != "true" {
				t.Errorf("the retry: got %d %s (replayed %q), want a replay of %s", retry.status, retry.body,
					retry.header.Get("Idempotent-Replayed"), want)
			}
			r.wantRows("shop.orders", 1)
		})
	}
}

func TestFaults_dropBeforeCommitLeavesAReplayAlone(t *testing.T) {
	r := open(t, shop.Config{Faults: true})
	r.must("POST", "/orders", articleOrder, "Idempotency-Key", "k")
	got := r.must("POST", "/orders", articleOrder, "Idempotency-Key", "k", "X-Demo-Fail", "drop-before-commit")
	if got.status != 201 || got.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("got %d %s, want the replay: no handler runs that could cut anything", got.status, got.body)
	}
}

func TestFaults_droppedClientDoublesItsOrderWithoutTheGuard(t *testing.T) {
	r := open(t, shop.Config{Faults: true})
	if got, err := r.send("POST", "/unguarded/orders", articleOrder, "X-Demo-Fail", "drop-before-commit"); err == nil {
		t.Errorf("got %d %s, want a broken connection", got.status, got.body)
	}
	r.must("POST", "/unguarded/orders", articleOrder)
	r.wantRows("shop.unguarded_orders", 2)
}
