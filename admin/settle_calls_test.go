package admin_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/admin"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/queue"
)

// tries makes the next try at an effect through one door: a retry of its request, or
// another attempt of its task. Each try calls once at most.
type tries func(t *testing.T, db *idem.DB, e idem.Effect, b *bank) (next func())

func callOnce(ctx context.Context, e idem.Effect, b *bank) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	_, err := idem.Call(ctx, e, func(ctx context.Context, key string) (map[string]string, error) {
		defer cancel() // a keyed call is left to the next try
		return b.charge(ctx, key)
	})
	return err
}

func triesOfARequest(t *testing.T, db *idem.DB, e idem.Effect, b *bank) (next func()) {
	g := newGuarded(t, db, idemhttp.Route{Lease: time.Second}, func(w http.ResponseWriter, r *http.Request) {
		if callOnce(r.Context(), e, b) == nil {
			w.WriteHeader(http.StatusCreated)
		}
	})
	return func() { g.post(t.Context(), "one", "x") }
}

func triesOfATask(t *testing.T, db *idem.DB, e idem.Effect, b *bank) (next func()) {
	kind := queue.Define[string]("k", queue.Options{MaxAttempts: 1})
	w := queue.NewWorker(db, queue.Config{})
	kind.HandleLeased(w, func(ctx context.Context, _ string) error { return callOnce(ctx, e, b) })
	working(t, w)
	var id int64
	return func() {
		t.Helper()
		if id == 0 {
			id = enqueued(t, kind, db, "one")
		} else if _, err := admin.RetryTask(t.Context(), db, id, carol); err != nil {
			t.Fatal(err)
		}
		until(t, "the attempt has ended", func() bool {
			s, err := admin.ShowTask(t.Context(), db, id)
			return err == nil && s.Task.Finished()
		})
	}
}

// lookedAt is the effect as an operator finds it who waits until its last call can not be
// under way any more.
func lookedAt(t *testing.T, db *idem.DB, want admin.Status) (e admin.Effect) {
	t.Helper()
	until(t, "the call is over", func() bool {
		var err error
		if e, err = admin.ShowEffect(t.Context(), db, "shop", "e"); err != nil {
			t.Fatal(err)
		}
		return !e.Calling
	})
	if e.Status != want {
		t.Fatalf("the effect is %s, want %s", e.Status, want)
	}
	return e
}

// Evidence speaks of the last call that was made when it was asked for. A call that was
// made since then may have done what the others have not: by itself, where the other side
// honours keys, or because somebody else has settled the effect as absent.
func TestSettleEffect_evidenceIsOfItsCall(t *testing.T) {
	for name, tt := range map[string]struct {
		provider idem.Provider
		left     admin.Status // by a call that nobody knows the outcome of
		try      tries
	}{
		"keyless, a request": {idem.Provider{}, admin.StatusUnknown, triesOfARequest},
		"keyless, a task":    {idem.Provider{}, admin.StatusUnknown, triesOfATask},
		"keyed, a request":   {idem.Keyed(time.Hour), admin.StatusStarted, triesOfARequest},
		"keyed, a task":      {idem.Keyed(time.Hour), admin.StatusStarted, triesOfATask},
	} {
		for _, said := range []bool{true, false} {
			what := map[bool]string{true: ", the call is said", false: ", the call is not said"}[said]
			t.Run(name+what, func(t *testing.T) {
				t.Parallel()
				db := open(t)
				charged := 0
				b := &bank{next: hangsUp}
				try := tt.try(t, db, charge("e", tt.provider), b)
				try()
				asked := lookedAt(t, db, tt.left) // and the bank has no charge
				if tt.left == admin.StatusUnknown {
					colleague := settlement("e", admin.StatusAbsent)
					colleague.Calls = asked.Calls
					if _, err := admin.SettleEffect(t.Context(), db, colleague); err != nil {
						t.Fatal(err)
					}
				}
				b.next = func(context.Context) error { charged++; return errHungUp }
				try()
				now := lookedAt(t, db, tt.left)
				if asked.Calls != 1 || now.Calls != 2 || charged != 1 {
					t.Fatalf("%d calls and then %d, %d of them charged; want 1, 2 and 1", asked.Calls, now.Calls, charged)
				}
				lines := audited(t, db)
				for _, as := range []admin.Status{admin.StatusAbsent, admin.StatusApplied} {
					late := settlement("e", as)
					late.Calls = asked.Calls
					_, err := admin.SettleEffect(t.Context(), db, late)
					if !errors.Is(err, admin.ErrAnotherCall) || !errors.Is(err, admin.ErrRefused) || !strings.Contains(err.Error(), "called again: 2 calls; look again") {
						t.Errorf("late, as %s: got error %v, want ErrAnotherCall", as, err)
					}
				}
				if got := lookedAt(t, db, tt.left); got.Calls != 2 || audited(t, db) != lines {
					t.Errorf("the refused settlements have left %+v and %d lines of audit", got, audited(t, db)-lines)
				}
				last := settlement("e", admin.StatusAbsent)
				if said {
					last.Calls = now.Calls
				}
				if _, err := admin.SettleEffect(t.Context(), db, last); err != nil {
					t.Errorf("got error %v, want it settled", err)
				}
			})
		}
	}
}

// A number that the effect has not come to is that of something else.
func TestSettleEffect_ofACallThatWasNotMade(t *testing.T) {
	db := withEffects(t)
	s := settlement("unknown", admin.StatusAbsent)
	s.Calls = 2
	if _, err := admin.SettleEffect(t.Context(), db, s); !errors.Is(err, admin.ErrAnotherCall) || !strings.Contains(err.Error(), "it has 1, not 2") {
		t.Errorf("got error %v, want ErrAnotherCall", err)
	}
}

// A correction says the number in the same way: it is the same command.
func TestSettleEffect_aCorrectionIsOfItsCall(t *testing.T) {
	db := withEffects(t)
	s := settlement("unknown", admin.StatusApplied)
	s.Calls = 1
	for _, s.Correct = range []bool{false, true} {
		if _, err := admin.SettleEffect(t.Context(), db, s); err != nil {
			t.Fatalf("corrected %v: %v", s.Correct, err)
		}
	}
	s.Calls = 2
	if _, err := admin.SettleEffect(t.Context(), db, s); !errors.Is(err, admin.ErrAnotherCall) {
		t.Errorf("got error %v, want ErrAnotherCall", err)
	}
	if n := audited(t, db); n != 2 {
		t.Errorf("%d lines of audit, want 2", n)
	}
}
