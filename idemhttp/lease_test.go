package idemhttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
)

// receipt is what a call comes to in these tests.
type receipt struct {
	Number int64 `json:"number"`
}

// charge is the effect that these handlers call: keyed, unless they say otherwise.
func charge() idem.Effect {
	return idem.Effect{Scope: "shop", Key: "charge:1", Input: 1500, Provider: idem.Keyed(time.Hour)}
}

// charging serves a handler that calls charge once, writes an order with what came of
// it and answers.
func charging(r *rig, e idem.Effect, call func(ctx context.Context, key string) (receipt, error)) {
	r.handle("/pay", idemhttp.Route{Lease: 2 * time.Second}, func(w http.ResponseWriter, req *http.Request) {
		got, err := idem.Call(req.Context(), e, call)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		if err := insertOrder(req); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(got)
	})
	r.serve()
}

func TestLease_chargesOnceAndReplays(t *testing.T) {
	r := newRig(t)
	var calls atomic.Int64
	charging(r, charge(), func(_ context.Context, key string) (receipt, error) {
		return receipt{calls.Add(1)}, nil
	})
	first, second := r.send(post("/pay", "k", "{}")), r.send(post("/pay", "k", "{}"))
	r.want(first, 201, "")
	r.want(second, 201, "")
	if first.body != second.body || !second.replayed() || calls.Load() != 1 {
		t.Errorf("got %q and %q, replayed %v, %d calls", first.body, second.body, second.replayed(), calls.Load())
	}
	r.wantRows("select count(*) from orders", 1)
	r.wantRows("select count(*) from idem.applied_effects where status = 'applied' and cause_key = 'k'", 1)
	r.wantState("k", "answered")
}

func TestLease_unknownCallIsUnknownWhateverIsAnswered(t *testing.T) {
	r := newRig(t)
	e := charge()
	e.Provider = idem.Provider{}
	var calls atomic.Int64
	r.handle("/pay", idemhttp.Route{Lease: 2 * time.Second}, func(w http.ResponseWriter, req *http.Request) {
		_, err := idem.Call(req.Context(), e, func(context.Context, string) (receipt, error) {
			calls.Add(1)
			return receipt{}, errors.New("the bank hung up")
		})
		if !errors.Is(err, idem.ErrOutcomeUnknown) {
			t.Errorf("Call returned %v", err)
		}
		w.WriteHeader(http.StatusCreated)
	})
	r.serve()
	for range 3 {
		r.want(r.send(post("/pay", "k", "{}")), 409, "outcome-unknown")
	}
	r.wantRows("select count(*) from idem.applied_effects where status = 'unknown'", 1)
	r.wantState("k", "claimed")
	if n := calls.Load(); n != 1 {
		t.Errorf("%d calls, want 1", n)
	}
}

// E13: charged, then the handler answers 422.
func TestE13_chargedAndThenRefusedIsBound(t *testing.T) {
	r := newRig(t)
	var calls atomic.Int64
	r.handle("/pay", idemhttp.Route{Lease: 2 * time.Second}, func(w http.ResponseWriter, req *http.Request) {
		if _, err := idem.Call(req.Context(), charge(), func(context.Context, string) (receipt, error) {
			return receipt{calls.Add(1)}, nil
		}); err != nil {
			t.Error(err)
		}
		http.Error(w, "no", http.StatusUnprocessableEntity)
	})
	r.serve()
	r.want(r.send(post("/pay", "k", "{}")), 422, "")
	r.want(r.send(post("/pay", "k", `{"corrected":true}`)), 409, "key-mismatch")
	again := r.send(post("/pay", "k", "{}"))
	r.want(again, 422, "")
	if !again.replayed() || calls.Load() != 1 {
		t.Errorf("replayed %v after %d calls", again.replayed(), calls.Load())
	}
}
