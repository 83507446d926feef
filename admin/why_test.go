package admin_test

import (
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/admin"
	"github.com/idem-go/idem/idemhttp"
)

// Every state that a row can be in: what it says of the money, of a retry and of
// a new key.
func TestWhy_judgesEveryState(t *testing.T) {
	db := open(t)
	if _, err := db.Pool().Exec(t.Context(), planting); err != nil {
		t.Fatal(err)
	}
	for key, status := range map[string]int{"created": http.StatusCreated, "refused": http.StatusConflict} {
		g := newGuarded(t, db, idemhttp.Route{}, answering(t, db.Pool(), status, false, key))
		g.post(t.Context(), key, "x")
	}
	large := newGuarded(t, db, idemhttp.Route{MaxStored: 1}, answering(t, db.Pool(), http.StatusCreated, false, "large"))
	large.post(t.Context(), "large", "x")
	tests := []struct {
		key     string
		outcome admin.Outcome
		retry   admin.Retry
		newKey  bool
	}{
		{"created", admin.OutcomeCommitted, admin.RetryReplayed, false},
		{"refused", admin.OutcomeNotApplied, admin.RetryReplayed, true},
		{"older", admin.OutcomeUnknown, admin.RetryReplayed, false},
		{"large", admin.OutcomeCommitted, admin.RetryWithheld, false},
		{"unknown", admin.OutcomeUnknown, admin.RetryUnknown, false},
		{"tombstone", admin.OutcomeNotApplied, admin.RetryExpired, true},
		{"entombed", admin.OutcomeNotApplied, admin.RetryExpired, true},
		{"expired", admin.OutcomeNotApplied, admin.RetryRuns, true},
	}
	for _, tt := range tests {
		s, err := admin.Why(t.Context(), db, "a", tt.key)
		if err != nil || s.Outcome != tt.outcome || s.Retry != tt.retry || s.NewKey != tt.newKey || s.Owner != nil {
			t.Errorf("%s: got %q, %q, new key %v, owner %v and error %v; want %q, %q, %v, none", tt.key,
				s.Outcome, s.Retry, s.NewKey, s.Owner, err, tt.outcome, tt.retry, tt.newKey)
		}
		if s.Remembered == nil || s.Remembered.Body != nil || s.Remembered.Header != nil {
			t.Errorf("%s: got %+v, want the row without header and body", tt.key, s.Remembered)
		}
	}
}

// Whether an entombed key's writes were committed outlives its answer.
func TestWhy_aTombstoneKeepsTheOutcome(t *testing.T) {
	db := open(t)
	if _, err := db.Pool().Exec(t.Context(), planting); err != nil {
		t.Fatal(err)
	}
	if _, err := idem.Sweep(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	s, err := admin.Why(t.Context(), db, "a", "entombed")
	if err != nil || s.Remembered.State != admin.StateTombstone || s.Outcome != admin.OutcomeNotApplied {
		t.Errorf("got %+v and error %v, want a tombstone that was not applied", s.Remembered, err)
	}
}

func TestWhy_whatIsNotKnown(t *testing.T) {
	db := open(t, planted{"b", "one", 30})
	for _, tt := range []struct {
		scope, key string
		want       error
	}{{"a", "one", admin.ErrNotFound}, {"", "one", idem.ErrScopeInvalid}, {"a", "", idem.ErrKeyInvalid}} {
		if _, err := admin.Why(t.Context(), db, tt.scope, tt.key); !errors.Is(err, tt.want) {
			t.Errorf("%q %q: got error %v, want %v", tt.scope, tt.key, err, tt.want)
		}
	}
}

func TestWhy_aReleasedKeyHasAStory(t *testing.T) {
	db := open(t, planted{"b", "one", 30})
	g := newGuarded(t, db, idemhttp.Route{}, answering(t, db.Pool(), http.StatusConflict, false, "taken"))
	g.post(t.Context(), "one", "x")
	if _, err := admin.ReleaseKey(t.Context(), db, release("one")); err != nil {
		t.Fatal(err)
	}
	s, err := admin.Why(t.Context(), db, "a", "one")
	if err != nil || s.Remembered != nil || len(s.Audit) != 1 || s.Retry != admin.RetryRuns || s.NewKey {
		t.Errorf("got %+v and error %v, want nothing remembered and who released it", s, err)
	}
	scopes, err := admin.Scopes(t.Context(), db, "one")
	if want := []string{"a", "b"}; err != nil || !slices.Equal(scopes, want) {
		t.Errorf("got scopes %v and error %v, want %v: one released, one remembered", scopes, err, want)
	}
	if scopes, err := admin.Scopes(t.Context(), db, "two"); err != nil || len(scopes) != 0 {
		t.Errorf("got scopes %v and error %v, want none", scopes, err)
	}
}
