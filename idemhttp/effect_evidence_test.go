package idemhttp_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem"
)

// callsOver ends the time of every call, as if it had passed.
func (r *rig) callsOver() {
	r.t.Helper()
	if _, err := r.pool.Exec(context.Background(), "update idem.applied_effects set call_until = clock_timestamp()"); err != nil {
		r.t.Error(err)
	}
}

// Evidence of absence that was asked for while the call could be under way is of no
// worth when it arrives, however late that is.
func TestE14_absenceCountsByWhenItWasAskedFor(t *testing.T) {
	r := newRig(t)
	var asked, called atomic.Int64
	r.handle("/pay", onALease, func(w http.ResponseWriter, req *http.Request) {
		e := keyless()
		e.Reconcile = func(context.Context, string) (idem.Evidence, error) {
			asked.Add(1)
			r.callsOver() // while the other side looks for it
			return idem.Missing(), nil
		}
		_, err := idem.Call(req.Context(), e, func(context.Context, string) (receipt, error) {
			if called.Add(1) == 1 {
				return receipt{}, errors.New("the connection broke")
			}
			return receipt{1}, nil
		})
		if err == nil {
			w.WriteHeader(http.StatusCreated)
		}
	})
	r.serve()
	for range 2 { // the second asks
		r.want(r.send(post("/pay", "k", "{}")), 409, "outcome-unknown")
	}
	if asked.Load() != 1 || called.Load() != 1 {
		t.Errorf("asked %d times, called %d times; want once each", asked.Load(), called.Load())
	}
	r.want(r.send(post("/pay", "k", "{}")), 201, "")
	if asked.Load() != 2 || called.Load() != 2 {
		t.Errorf("asked %d times, called %d times; want twice each", asked.Load(), called.Load())
	}
}

// Evidence is of the call that it was asked of, and not of one that another key has
// made since.
func TestE14_absenceCountsForTheCallThatItWasAskedOf(t *testing.T) {
	r := newRig(t)
	var called atomic.Int64
	asked, answer := make(chan struct{}), make(chan struct{})
	r.handle("/pay", onALease, func(w http.ResponseWriter, req *http.Request) {
		_, key, _ := idem.KeyOf(req.Context())
		e := keyless()
		e.Reconcile = func(context.Context, string) (idem.Evidence, error) {
			if key == "slow" {
				close(asked)
				<-answer
			}
			return idem.Missing(), nil
		}
		_, err := idem.Call(req.Context(), e, func(context.Context, string) (receipt, error) {
			called.Add(1)
			return receipt{}, errors.New("charged, or not")
		})
		if !errors.Is(err, idem.ErrOutcomeUnknown) {
			t.Errorf("%s: %v", key, err)
		}
	})
	r.serve()
	r.want(r.send(post("/pay", "first", "{}")), 409, "outcome-unknown")
	r.callsOver()
	slow := r.begin(post("/pay", "slow", "{}"))
	<-asked
	r.want(r.send(post("/pay", "quick", "{}")), 409, "outcome-unknown") // believes it, and calls
	r.callsOver()
	close(answer)
	r.want(<-slow, 409, "outcome-unknown")
	if n := called.Load(); n != 2 {
		t.Errorf("%d calls, want 2: the slow one's evidence was of the first", n)
	}
}

// An owner that was taken for dead and is not has the result, and nobody else does.
func TestE7_resultOfAnOwnerTakenForDeadIsRecorded(t *testing.T) {
	r := newRig(t)
	calling, done := make(chan struct{}), make(chan struct{})
	r.handle("/pay", onALease, func(w http.ResponseWriter, req *http.Request) {
		_, err := idem.Call(req.Context(), keyless(), func(context.Context, string) (receipt, error) {
			close(calling)
			<-done
			return receipt{1}, nil
		})
		if err == nil {
			w.WriteHeader(http.StatusCreated)
		}
	})
	r.serve()
	first := r.begin(post("/pay", "first", "{}"))
	<-calling
	if _, err := r.pool.Exec(t.Context(), "update idem.idempotency_keys set lease_until = clock_timestamp()"); err != nil {
		t.Fatal(err)
	}
	r.want(r.send(post("/pay", "second", "{}")), 409, "outcome-unknown")
	close(done)
	r.want(<-first, 201, "")
	r.want(r.send(post("/pay", "second", "{}")), 201, "")
	if status, _, _ := r.effect(); status != "applied" {
		t.Errorf("the effect is %s", status)
	}
}

// A proof that is joined with something else proves nothing.
func TestCall_joinedProofIsUnknown(t *testing.T) {
	r := newRig(t)
	r.handle("/pay", onALease, func(w http.ResponseWriter, req *http.Request) {
		_, _ = idem.Call(req.Context(), keyless(), func(context.Context, string) (receipt, error) {
			return receipt{}, errors.Join(errors.New("the first address timed out"), idem.NotApplied(errors.New("the second refused")))
		})
		w.WriteHeader(http.StatusCreated)
	})
	r.serve()
	r.want(r.send(post("/pay", "k", "{}")), 409, "outcome-unknown")
}

// A handler may write to its final transaction within a call; its own lock on the key
// is not in its way.
func TestCall_finalTransactionWithinIt(t *testing.T) {
	for name, e := range map[string]idem.Effect{"keyed": charge(), "keyless": keyless()} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			e.Timeout = 5 * time.Second
			r.handle("/pay", onALease, func(w http.ResponseWriter, req *http.Request) {
				_, err := idem.Call(req.Context(), e, func(context.Context, string) (receipt, error) {
					return receipt{1}, insertOrder(req)
				})
				if err != nil {
					t.Error(err)
				}
				w.WriteHeader(http.StatusCreated)
			})
			r.serve()
			r.want(r.send(post("/pay", "k", "{}")), 201, "")
			r.wantRows("select count(*) from orders", 1)
		})
	}
}

// A recorded result that the program cannot read is no reason to believe its handler, and
// nothing of it is told.
func TestCall_resultOfAnotherTypeIsNotAnsweredOver(t *testing.T) {
	r := newRig(t)
	type narrow struct {
		Number int8 `json:"number"`
	}
	wide := true
	r.handle("/pay", onALease, func(w http.ResponseWriter, req *http.Request) {
		var err error
		if wide {
			_, err = idem.Call(req.Context(), charge(), func(context.Context, string) (receipt, error) { return receipt{4111}, nil })
		} else {
			_, err = idem.Call(req.Context(), charge(), func(context.Context, string) (narrow, error) { return narrow{1}, nil })
		}
		if err != nil {
			http.Error(w, "declined", http.StatusPaymentRequired)
		}
	})
	r.serve()
	r.want(r.send(post("/pay", "a", "{}")), 200, "")
	wide = false
	r.want(r.send(post("/pay", "b", "{}")), 503, "unavailable")
	r.wantRows("select count(*) from idem.idempotency_keys where key = 'b'", 0) // nothing is remembered
	r.server.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.events[len(r.events)-1]
	if last.Err == nil || !strings.Contains(last.Err.Error(), "cannot unmarshal number into") || strings.Contains(last.Err.Error(), "4111") {
		t.Errorf("told %+v, want why, and not the result", last)
	}
}
