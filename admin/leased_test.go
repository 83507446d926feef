package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/admin"
	"github.com/idem-go/idem/idemhttp"
)

// bank is the other side of the calls in these tests: what it does next, and which
// downstream keys it has seen.
type bank struct {
	next func(ctx context.Context) error // nil: it charges
	seen []string
}

var errHungUp = errors.New("the bank hung up")

func hangsUp(context.Context) error { return errHungUp }

func (b *bank) charge(ctx context.Context, key string) (map[string]string, error) {
	b.seen = append(b.seen, key)
	if b.next != nil {
		if err := b.next(ctx); err != nil {
			return nil, err
		}
	}
	return map[string]string{"id": "ch_1"}, nil
}

// paying is a guard on a lease before a handler that calls one effect and answers with
// its result, or with a status of its own.
func paying(t *testing.T, db *idem.DB, e idem.Effect, b *bank, status int) *guarded {
	t.Helper()
	return newGuarded(t, db, idemhttp.Route{Lease: time.Second}, func(w http.ResponseWriter, r *http.Request) {
		result, err := idem.Call(r.Context(), e, b.charge)
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(result)
	})
}

func charge(key string, p idem.Provider) idem.Effect {
	return idem.Effect{Scope: "shop", Key: key, Provider: p, Timeout: 100 * time.Millisecond}
}

// until waits until the condition holds.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("it never happened: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func settlement(key string, as admin.Status) admin.Settlement {
	s := admin.Settlement{Scope: "shop", Key: key, As: as, Actor: "carol@desk", Reason: "asked the bank"}
	if as == admin.StatusApplied {
		s.Result = json.RawMessage(`{"id":"ch_9"}`)
	}
	return s
}

// wantStory compares the story of a's key.
func wantStory(t *testing.T, db *idem.DB, key string, outcome admin.Outcome, retry admin.Retry, newKey bool, effects ...admin.Status) {
	t.Helper()
	s, err := admin.Why(t.Context(), db, "a", key)
	if err != nil || s.Outcome != outcome || s.Retry != retry || s.NewKey != newKey || len(s.Effects) != len(effects) {
		t.Fatalf("%s: got %q, %q, new key %v, %d effects and error %v; want %q, %q, %v, %v", key, s.Outcome, s.Retry, s.NewKey, len(s.Effects), err,
			outcome, retry, newKey, effects)
	}
	for i, e := range s.Effects {
		if e.Status != effects[i] || e.Cause != (admin.Intent{Door: "request", Scope: "a", Key: key}) {
			t.Errorf("%s: got effect %+v, want %s, caused by it", key, e, effects[i])
		}
	}
}

// E10, for requests: the story of one intent and the verdict, in each state.
func TestE10_whyTellsTheStoryInEachState(t *testing.T) {
	db := open(t)
	keyed := idem.Keyed(time.Hour)
	t.Run("in flight", func(t *testing.T) {
		calling, finish := make(chan struct{}), make(chan struct{})
		b := &bank{next: func(context.Context) error { close(calling); <-finish; return nil }}
		e := charge("in-flight", keyed)
		e.Timeout = time.Minute
		done := make(chan int, 1)
		go func() { done <- paying(t, db, e, b, http.StatusCreated).post(t.Context(), "in-flight", "x") }()
		<-calling
		wantStory(t, db, "in-flight", admin.OutcomeUnknown, admin.RetryWaits, false, admin.StatusStarted)
		wantRelease(t, db, release("in-flight"), admin.ErrInFlight)
		if _, err := admin.SettleEffect(t.Context(), db, settlement("in-flight", admin.StatusApplied)); !errors.Is(err, admin.ErrEffectInFlight) {
			t.Errorf("settling what is in flight: %v", err)
		}
		close(finish)
		if status := <-done; status != http.StatusCreated {
			t.Errorf("got status %d, want 201", status)
		}
		wantStory(t, db, "in-flight", admin.OutcomeCommitted, admin.RetryReplayed, false, admin.StatusApplied)
	})
	for _, tt := range []struct {
		key, sql string
		provider idem.Provider
		next     func(context.Context) error
		status   int // of the handler behind the call
		outcome  admin.Outcome
		retry    admin.Retry
		newKey   bool
		effect   admin.Status
		release  error
	}{
		{key: "answered", provider: keyed, status: 201,
			outcome: admin.OutcomeCommitted, retry: admin.RetryReplayed, effect: admin.StatusApplied, release: admin.ErrCommitted},
		{key: "declined", provider: keyed, status: 402,
			outcome: admin.OutcomeCommitted, retry: admin.RetryReplayed, effect: admin.StatusApplied, release: admin.ErrEffects},
		{key: "refused", provider: keyed, next: func(context.Context) error { return idem.NotApplied(errHungUp) },
			outcome: admin.OutcomeNotApplied, retry: admin.RetryReplayed, newKey: true, effect: admin.StatusAbsent},
		{key: "failed", provider: keyed, status: 500,
			outcome: admin.OutcomeUnknown, retry: admin.RetryGoesOn, effect: admin.StatusApplied, release: admin.ErrEffects},
		{key: "unknown", next: hangsUp,
			outcome: admin.OutcomeUnknown, retry: admin.RetryUnknown, effect: admin.StatusUnknown, release: admin.ErrEffects},
		{key: "expired", provider: keyed, status: 201, sql: "update idem.idempotency_keys set created_at = now() - interval '2 h', expires_at = now() where key = $1",
			outcome: admin.OutcomeCommitted, retry: admin.RetryExpired, effect: admin.StatusApplied, release: admin.ErrExpired},
		{key: "swept", provider: keyed, status: 201, sql: "delete from idem.idempotency_keys where key = $1",
			outcome: admin.OutcomeCommitted, retry: admin.RetryRuns, effect: admin.StatusApplied, release: admin.ErrNotFound},
	} {
		t.Run(tt.key, func(t *testing.T) {
			g := paying(t, db, charge(tt.key, tt.provider), &bank{next: tt.next}, tt.status)
			g.post(t.Context(), tt.key, "x")
			if tt.sql != "" {
				if _, err := db.Pool().Exec(t.Context(), tt.sql, tt.key); err != nil {
					t.Fatal(err)
				}
			}
			wantStory(t, db, tt.key, tt.outcome, tt.retry, tt.newKey, tt.effect)
			if _, err := admin.ReleaseKey(t.Context(), db, release(tt.key)); !errors.Is(err, tt.release) {
				t.Errorf("a release ends with %v, want %v", err, tt.release)
			}
		})
	}
	t.Run("never seen", func(t *testing.T) {
		if _, err := admin.Why(t.Context(), db, "a", "never"); !errors.Is(err, admin.ErrNotFound) {
			t.Errorf("got error %v, want ErrNotFound", err)
		}
	})
}

// A call that its process has left, and may be made again with the same key.
func TestWhy_aKeyedCallThatWasLeftGoesOn(t *testing.T) {
	db := open(t)
	b := &bank{next: hangsUp}
	g := newGuarded(t, db, idemhttp.Route{Lease: time.Second, Limit: 300 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
		if _, err := idem.Call(r.Context(), charge("left", idem.Keyed(time.Hour)), b.charge); err == nil {
			w.WriteHeader(http.StatusCreated)
		}
	})
	g.post(t.Context(), "one", "x")
	wantStory(t, db, "one", admin.OutcomeUnknown, admin.RetryGoesOn, false, admin.StatusStarted)
	b.next = nil
	if status := g.post(t.Context(), "one", "x"); status != http.StatusCreated {
		t.Errorf("got status %d, want 201", status)
	}
	wantStory(t, db, "one", admin.OutcomeCommitted, admin.RetryReplayed, false, admin.StatusApplied)
	for _, key := range b.seen {
		if key != b.seen[0] {
			t.Errorf("the bank saw the keys %v, want one", b.seen)
		}
	}
}

// E7, behind the unknown: what an operator decides is what the retry goes on from.
func TestE7_aSettledEffectEndsTheRetry(t *testing.T) {
	for _, tt := range []struct {
		as    admin.Status
		body  string
		calls int
	}{
		{admin.StatusApplied, `{"id":"ch_9"}`, 1},
		{admin.StatusAbsent, `{"id":"ch_1"}`, 2},
	} {
		t.Run(string(tt.as), func(t *testing.T) {
			db := open(t)
			b := &bank{next: hangsUp}
			g := paying(t, db, charge("e", idem.Provider{}), b, http.StatusCreated)
			for range 2 {
				if w := g.send(t.Context(), "one", "x"); w.Code != http.StatusConflict || problemCode(w) != "outcome-unknown" {
					t.Fatalf("got %d %s, want outcome-unknown", w.Code, w.Body)
				}
			}
			b.next = nil
			var change admin.Change
			until(t, "the call is over and the effect settled", func() (settled bool) {
				var err error
				change, err = admin.SettleEffect(t.Context(), db, settlement("e", tt.as))
				if err != nil && !errors.Is(err, admin.ErrCalling) {
					t.Fatal(err)
				}
				return err == nil
			})
			w := g.send(t.Context(), "one", "x")
			if got := w.Body.String(); w.Code != http.StatusCreated || got != tt.body+"\n" || len(b.seen) != tt.calls || b.seen[0] != b.seen[len(b.seen)-1] {
				t.Errorf("got %d %q after the calls %v, want 201 %s after %d with one key", w.Code, got, b.seen, tt.body, tt.calls)
			}
			wantStory(t, db, "one", admin.OutcomeCommitted, admin.RetryReplayed, false, admin.StatusApplied)
			s, err := admin.Why(t.Context(), db, "a", "one")
			if err != nil || len(s.Audit) != 1 || s.Audit[0].ID != change.ID || s.Audit[0].Actor != "carol@desk" || s.Audit[0].Action != "effect_settle" ||
				s.Audit[0].Key != "e" || s.Audit[0].Reason != "asked the bank" {
				t.Errorf("got audit %+v (%v), want who settled it and why", s.Audit, err)
			}
			var detail map[string]any
			if err := json.Unmarshal(change.Detail, &detail); err != nil || detail["status"] != "unknown" || detail["settled"] != string(tt.as) ||
				detail["last_error"] != errHungUp.Error() || detail["downstream_key"] != b.seen[0] {
				t.Errorf("got detail %s (%v), want what it was before", change.Detail, err)
			}
		})
	}
}

// An owner that was late finds its effect settled, and can record nothing over it.
func TestSettleEffect_aLateOwnerIsFencedOut(t *testing.T) {
	db := open(t)
	calling, finish := make(chan struct{}), make(chan struct{})
	e := charge("e", idem.Provider{})
	var late atomic.Value
	g := newGuarded(t, db, idemhttp.Route{Lease: time.Second}, func(w http.ResponseWriter, r *http.Request) {
		_, err := idem.Call(r.Context(), e, func(context.Context, string) (string, error) {
			close(calling)
			<-finish
			return "late", nil
		})
		late.Store(err)
	})
	done := make(chan *answer, 1)
	go func() { w := g.send(t.Context(), "one", "x"); done <- &answer{w.Code, problemCode(w)} }()
	<-calling
	// As if the process had been frozen: nobody renews the lease, and its time passes.
	until(t, "the effect is settled", func() bool {
		if _, err := db.Pool().Exec(t.Context(), "update idem.idempotency_keys set lease_until = clock_timestamp()"); err != nil {
			t.Fatal(err)
		}
		_, err := admin.SettleEffect(t.Context(), db, settlement("e", admin.StatusApplied))
		if err != nil && !errors.Is(err, admin.ErrRefused) {
			t.Fatal(err)
		}
		return err == nil
	})
	close(finish)
	if got := <-done; got.code != "in-flight" {
		t.Errorf("the late owner's client got %+v, want in-flight", got)
	}
	if err, _ := late.Load().(error); !errors.Is(err, idem.ErrLeaseLost) {
		t.Errorf("the late Call returned %v, want ErrLeaseLost", err)
	}
	got, err := admin.ShowEffect(t.Context(), db, "shop", "e")
	if err != nil || got.Status != admin.StatusApplied || string(got.Result) != `{"id":"ch_9"}` {
		t.Errorf("got %+v (%v), want what was settled", got, err)
	}
}

type answer struct {
	status int
	code   string
}

// A released claim is lost for whoever held it: its late owner commits nothing.
func TestReleaseKey_ofAnAbandonedClaim(t *testing.T) {
	db := open(t)
	started, finish := make(chan struct{}), make(chan struct{})
	write := answering(t, db.Pool(), http.StatusCreated, false, "corrected")
	g := newGuarded(t, db, idemhttp.Route{Lease: time.Second}, func(w http.ResponseWriter, r *http.Request) {
		close(started)
		<-finish
		if _, err := idem.Tx(r.Context()).Exec(r.Context(), "insert into written default values"); err == nil {
			w.WriteHeader(http.StatusCreated)
		}
	})
	done := make(chan int, 1)
	go func() { done <- g.post(t.Context(), "one", "x") }()
	<-started
	wantRelease(t, db, release("one"), admin.ErrInFlight)
	until(t, "the claim is released", func() bool {
		if _, err := db.Pool().Exec(t.Context(), "update idem.idempotency_keys set lease_until = clock_timestamp()"); err != nil {
			t.Fatal(err)
		}
		_, err := admin.ReleaseKey(t.Context(), db, release("one"))
		if err != nil && !errors.Is(err, admin.ErrInFlight) {
			t.Fatal(err)
		}
		return err == nil
	})
	other := newGuarded(t, db, idemhttp.Route{Lease: time.Second}, write)
	if status := other.post(t.Context(), "one", "corrected"); status != http.StatusCreated {
		t.Errorf("got status %d for the request after the release, want 201", status)
	}
	close(finish)
	if status := <-done; status == http.StatusCreated || written(t, db) != 1 {
		t.Errorf("the late owner answered %d, and %d rows were written; want a refusal and 1", status, written(t, db))
	}
}

// The final transaction holds the claim's row: whoever asks is told who works on it,
// also when the lease is over meanwhile.
func TestWhy_aFinalTransactionIsInFlight(t *testing.T) {
	db := open(t)
	started, finish := make(chan struct{}), make(chan struct{})
	write := answering(t, db.Pool(), http.StatusCreated, false, "done")
	g := newGuarded(t, db, idemhttp.Route{Lease: time.Second}, func(w http.ResponseWriter, r *http.Request) {
		write(w, r)
		close(started)
		<-finish
	})
	done := make(chan int, 1)
	go func() { done <- g.post(t.Context(), "one", "x") }()
	<-started
	until(t, "the lease is over", func() bool {
		k, err := admin.ShowKey(t.Context(), db, "a", "one")
		return err == nil && !k.Live
	})
	s, err := admin.Why(t.Context(), db, "a", "one")
	if err != nil || s.Owner == nil || s.Owner.PID == 0 || s.Retry != admin.RetryWaits {
		t.Errorf("got %+v and error %v, want its owner", s, err)
	}
	wantRelease(t, db, release("one"), admin.ErrInFlight)
	close(finish)
	if status := <-done; status != http.StatusCreated {
		t.Errorf("got status %d, want 201", status)
	}
}
