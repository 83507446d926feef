package idemhttp_test

import (
	"io"
	"log"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem/idemhttp"
)

var discard = log.New(io.Discard, "", 0)

const body = `{"customer_id":123,"amount":1500}`

func TestQ1_secondRequestGetsTheFirstAnswer(t *testing.T) {
	r := newRig(t)
	var runs atomic.Int64
	r.handle("/orders", idemhttp.Route{}, createOrder(&runs))
	r.serve()

	first, second := r.send(post("/orders", "k", body)), r.send(post("/orders", "k", body))
	r.want(first, 201, "")
	r.want(second, 201, "")
	if first.body != second.body || first.header.Get("Location") != second.header.Get("Location") {
		t.Errorf("the repeat got %q, the first %q", second.body, first.body)
	}
	if first.replayed() || !second.replayed() {
		t.Errorf("Idempotent-Replayed: first %v, second %v; want false, true", first.replayed(), second.replayed())
	}
	r.wantRows("select count(*) from orders", 1)
	r.wantRuns(&runs, 1)
}

func TestQ2_anotherAmountIsAMismatchAndChangesNothing(t *testing.T) {
	r := newRig(t)
	var runs atomic.Int64
	r.handle("/orders", idemhttp.Route{}, createOrder(&runs))
	r.serve()

	first := r.send(post("/orders", "k", body))
	other := r.send(post("/orders", "k", `{"customer_id":123,"amount":1501}`))
	r.want(other, 409, "key-mismatch")
	if !strings.Contains(other.body, `"safe_new_key":false`) {
		t.Errorf("the problem allows a new key: %s", other.body)
	}
	again := r.send(post("/orders", "k", body))
	if again.body != first.body || !again.replayed() {
		t.Errorf("afterwards the first answer is not replayed: %d %s", again.status, again.body)
	}
	r.wantRows("select count(*) from orders", 1)
}

func TestQ3_fiftyAtOnceMakeOneOrder(t *testing.T) {
	r := newRig(t)
	var runs atomic.Int64
	r.handle("/orders", idemhttp.Route{}, createOrder(&runs))
	r.serve()

	replies := r.together(50, post("/orders", "k", body))
	for _, got := range replies {
		r.want(got, 201, "")
		if got.body != replies[0].body {
			t.Fatalf("two answers: %q and %q", got.body, replies[0].body)
		}
	}
	r.wantRows("select count(*) from orders", 1)
	r.wantRuns(&runs, 1)
}
