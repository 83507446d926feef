package admin_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/admin"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/claim"
	"github.com/idem-go/idem/internal/pgsql/keys"
)

// release is a proper release of a's key.
func release(key string) admin.Release {
	return admin.Release{Scope: "a", Key: key, Actor: "carol@desk", Reason: "the slot was freed"}
}

func TestReleaseKey_aRefusalIsForgottenAndWrittenDown(t *testing.T) {
	db := open(t)
	g := newGuarded(t, db, idemhttp.Route{}, answering(t, db.Pool(), http.StatusConflict, false, "taken"))
	for range 2 {
		if status := g.post(t.Context(), "one", "x"); status != http.StatusConflict {
			t.Fatalf("got status %d, want 409", status)
		}
	}
	change, err := admin.ReleaseKey(t.Context(), db, release("one"))
	if err != nil {
		t.Fatal(err)
	}
	if g.post(t.Context(), "one", "corrected"); g.runs.Load() != 2 {
		t.Errorf("the handler ran %d times, want twice: once before the release, once after it", g.runs.Load())
	}
	story, err := admin.Why(t.Context(), db, "a", "one")
	if err != nil || len(story.Audit) != 1 {
		t.Fatalf("got %+v and error %v, want one line of audit", story, err)
	}
	got := story.Audit[0]
	if got.ID != change.ID || !got.At.Equal(change.At) || got.Actor != "carol@desk" || got.Action != "key_release" ||
		got.Scope != "a" || got.Key != "one" || got.Reason != "the slot was freed" {
		t.Errorf("got %+v, want what the release returned: %+v", got, change)
	}
	var detail struct {
		State     string
		Status    int `json:"response_status"`
		Committed bool
	}
	if err := json.Unmarshal(got.Detail, &detail); err != nil || detail.State != "answered" || detail.Status != 409 || detail.Committed {
		t.Errorf("got detail %s (%v)", got.Detail, err)
	}
	if strings.Contains(string(got.Detail), "taken") {
		t.Errorf("the audit holds the body: %s", got.Detail)
	}
}

// What the column says decides, not the status: what a handler wrote under the
// same status may be there or not.
func TestReleaseKey_whatCommittedIsRefused(t *testing.T) {
	commit402 := map[int]idemhttp.Policy{402: idemhttp.CommitAndStore}
	rollback200 := map[int]idemhttp.Policy{200: idemhttp.RollbackAndStore}
	tests := []struct {
		name  string
		route idemhttp.Route
		code  int
		keep  bool
		want  error
	}{
		{"a success", idemhttp.Route{}, 201, false, admin.ErrCommitted},
		{"a redirect", idemhttp.Route{}, 303, false, admin.ErrCommitted},
		{"a refusal that kept its writes", idemhttp.Route{}, 402, true, admin.ErrCommitted},
		{"a refusal that the policy commits", idemhttp.Route{Policies: commit402}, 402, false, admin.ErrCommitted},
		{"a refusal", idemhttp.Route{}, 402, false, nil},
		{"a success that the policy rolls back", idemhttp.Route{Policies: rollback200}, 200, false, nil},
		{"a lazy refusal that kept its writes", idemhttp.Route{LazyClaim: true}, 409, true, admin.ErrCommitted},
		{"a lazy refusal", idemhttp.Route{LazyClaim: true}, 409, false, nil},
		{"a withheld success", idemhttp.Route{MaxStored: 1}, 201, false, admin.ErrWithheld},
		{"a withheld refusal", idemhttp.Route{MaxStored: 1}, 409, false, admin.ErrWithheld},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			db := open(t)
			g := newGuarded(t, db, tt.route, answering(t, db.Pool(), tt.code, tt.keep, "body"))
			if status := g.post(t.Context(), "one", "x"); status != tt.code {
				t.Fatalf("got status %d, want %d", status, tt.code)
			}
			committed := written(t, db) == 1
			k, err := admin.ShowKey(t.Context(), db, "a", "one")
			if err != nil || (k.Outcome == admin.OutcomeCommitted) != committed || k.Outcome == admin.OutcomeUnknown {
				t.Errorf("the row says %q (%v), and the handler's row is there: %v", k.Outcome, err, committed)
			}
			wantRelease(t, db, release("one"), tt.want)
		})
	}
}

// wantRelease releases a key and compares how that ends; whatever is refused
// leaves the key and the audit as they were.
func wantRelease(t *testing.T, db *idem.DB, r admin.Release, want error) {
	t.Helper()
	_, err := admin.ReleaseKey(t.Context(), db, r)
	if !errors.Is(err, want) || errors.Is(err, admin.ErrRefused) != errors.Is(want, admin.ErrRefused) {
		t.Errorf("%s: got error %v, want %v", r.Key, err, want)
	}
	lines := 0
	if want == nil {
		lines = 1
	}
	if n := audited(t, db); n != lines {
		t.Errorf("%s: the audit has %d lines, want %d", r.Key, n, lines)
	}
	_, err = admin.ShowKey(t.Context(), db, r.Scope, r.Key)
	if gone := errors.Is(err, admin.ErrNotFound); gone != (want == nil || errors.Is(want, admin.ErrNotFound)) {
		t.Errorf("%s: the key is gone: %v (%v)", r.Key, gone, err)
	}
}

// planting makes rows that take too long to come about.
const planting = `
insert into idem.idempotency_keys
      (scope, key, fence, state, fingerprint_version, fingerprint, response_status, response_headers, response_body,
       created_at, expires_at, tombstone_until, committed)
select 'a', key, gen_random_uuid(), state, 1, sha256(''), status, case when state = 'answered' then array[]::bytea[] end,
       case when state = 'answered' then ''::bytea end, now() - interval '2 h', now() + life, now() + entombed, committed
from  (values ('expired', 'answered', 409, interval '-1 h', null, false),
              ('entombed', 'answered', 409, interval '-1 h', interval '1 h', false),
              ('tombstone', 'tombstone', null, interval '1 h', null, false),
              ('older', 'answered', 409, interval '1 h', null, null),
              ('unknown', 'unknown', null, interval '1000 years', null, null))
       as row (key, state, status, life, entombed, committed)`

func TestReleaseKey_whatIsNoRefusalIsRefused(t *testing.T) {
	db := open(t)
	if _, err := db.Pool().Exec(t.Context(), planting); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]error{
		"expired": admin.ErrExpired, "entombed": admin.ErrExpired, "tombstone": admin.ErrExpired,
		"older": admin.ErrUndecided, "unknown": admin.ErrUndecided, "nobody": admin.ErrNotFound,
	} {
		wantRelease(t, db, release(key), want)
	}
	other := release("older")
	other.Scope = "b"
	wantRelease(t, db, other, admin.ErrNotFound)
}

func TestReleaseKey_namesWhoAndWhy(t *testing.T) {
	db := open(t)
	for name, r := range map[string]struct {
		r    admin.Release
		want error
	}{
		"no actor":      {admin.Release{Scope: "a", Key: "k", Reason: "r"}, admin.ErrAudit},
		"blank reason":  {admin.Release{Scope: "a", Key: "k", Actor: "c", Reason: " \n"}, admin.ErrAudit},
		"a long reason": {admin.Release{Scope: "a", Key: "k", Actor: "c", Reason: strings.Repeat("r", admin.MaxReason+1)}, admin.ErrAudit},
		"a NUL":         {admin.Release{Scope: "a", Key: "k", Actor: "c\x00", Reason: "r"}, admin.ErrAudit},
		"no text":       {admin.Release{Scope: "a", Key: "k", Actor: "\xff", Reason: "r"}, admin.ErrAudit},
		"no scope":      {admin.Release{Key: "k", Actor: "c", Reason: "r"}, idem.ErrScopeInvalid},
		"no key":        {admin.Release{Scope: "a", Actor: "c", Reason: "r"}, idem.ErrKeyInvalid},
	} {
		if _, err := admin.ReleaseKey(t.Context(), db, r.r); !errors.Is(err, r.want) {
			t.Errorf("%s: got error %v, want %v", name, err, r.want)
		}
	}
}

func TestReleaseKey_ofManyAtOnceOneWins(t *testing.T) {
	db := open(t)
	g := newGuarded(t, db, idemhttp.Route{}, answering(t, db.Pool(), http.StatusConflict, false, "taken"))
	g.post(t.Context(), "one", "x")
	var won, lost atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			switch _, err := admin.ReleaseKey(t.Context(), db, release("one")); {
			case err == nil:
				won.Add(1)
			case errors.Is(err, admin.ErrNotFound):
				lost.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 || lost.Load() != 7 || audited(t, db) != 1 {
		t.Errorf("%d won, %d found nothing, %d lines of audit; want 1, 7 and 1", won.Load(), lost.Load(), audited(t, db))
	}
}

// Repeats in another process than the release, while it happens: each gets the
// refusal, old or new, and none is told that the key is another request's.
func TestReleaseKey_repeatsMeanwhileGetTheRefusalOrRun(t *testing.T) {
	db := open(t)
	refuse := answering(t, db.Pool(), http.StatusConflict, false, "taken")
	first, second := newGuarded(t, db, idemhttp.Route{}, refuse), newGuarded(t, db, idemhttp.Route{}, refuse)
	first.post(t.Context(), "one", "x")
	stop := make(chan struct{})
	var statuses sync.Map
	var all sync.WaitGroup
	for _, g := range []*guarded{first, second} {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					w := g.send(t.Context(), "one", "x")
					statuses.Store([2]any{w.Code, problemCode(w)}, true)
				}
			}
		})
	}
	released := int64(0)
	for range 50 {
		switch _, err := admin.ReleaseKey(t.Context(), db, release("one")); {
		case err == nil:
			released++
		case !errors.Is(err, admin.ErrNotFound) && !errors.Is(err, admin.ErrInFlight):
			t.Error(err)
		}
	}
	close(stop)
	all.Wait()
	statuses.Range(func(seen, _ any) bool {
		// Without locks two may run at once, and the one that lost the index may
		// find the other's refusal released already.
		lost := seen == [2]any{http.StatusServiceUnavailable, "unavailable"} && !locks
		if seen != [2]any{http.StatusConflict, ""} && !lost {
			t.Errorf("a repeat was told %v, want the handler's 409", seen)
		}
		return true
	})
	runs := first.runs.Load() + second.runs.Load()
	if released == 0 || runs < 2 || runs > released+1 && locks {
		t.Errorf("%d releases and %d runs; want at least one release, and no run without one", released, runs)
	}
}

// The release of a key is no rival of its request: until its locks are gone,
// which is a moment after its commit is seen, a repeat must not take it for the
// owner of another request.
func TestReleaseKey_holdsTheRequestsLockBesideTheKeys(t *testing.T) {
	db := open(t)
	g := newGuarded(t, db, idemhttp.Route{}, answering(t, db.Pool(), http.StatusConflict, false, "taken"))
	g.post(t.Context(), "one", "x")
	k, err := admin.ShowKey(t.Context(), db, "a", "one")
	if err != nil {
		t.Fatal(err)
	}
	tx, err := db.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := admin.ReleaseWithin(t.Context(), tx, release("one")); err != nil {
		t.Fatal(err)
	}
	ofKey, ofRequest := claim.Locks("a", "one", k.Fingerprint)
	_, ofAnother := claim.Locks("a", "one", []byte("another"))
	for name, tt := range map[string]struct {
		lock  int64
		rival bool
	}{"the same request": {ofRequest, false}, "another request": {ofAnother, true}} {
		var rival bool
		if err := db.Pool().QueryRow(t.Context(), keys.Rival, ofKey, tt.lock).Scan(&rival); err != nil || rival != tt.rival {
			t.Errorf("%s: the release is a rival: %v (%v), want %v", name, rival, err, tt.rival)
		}
	}
}

func TestReleaseKey_aRunningRequestIsNotDisturbed(t *testing.T) {
	db := open(t)
	started, finish := make(chan struct{}), make(chan struct{})
	write := answering(t, db.Pool(), http.StatusCreated, false, "done")
	g := newGuarded(t, db, idemhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
		close(started)
		<-finish
		write(w, r)
	})
	var all sync.WaitGroup
	all.Go(func() {
		if status := g.post(t.Context(), "one", "x"); status != http.StatusCreated {
			t.Errorf("got status %d, want 201", status)
		}
	})
	<-started
	_, err := admin.ReleaseKey(t.Context(), db, release("one"))
	if want := whileRunning(admin.ErrInFlight); !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
	}
	story, err := admin.Why(t.Context(), db, "a", "one")
	wantRunning(t, story, err)
	close(finish)
	all.Wait()
	wantRelease(t, db, release("one"), admin.ErrCommitted)
	if g.runs.Load() != 1 || written(t, db) != 1 {
		t.Errorf("the handler ran %d times and left %d rows, want once", g.runs.Load(), written(t, db))
	}
}

// A key whose time is over and that is taken anew is held by the new request.
func TestReleaseKey_aRowThatIsBeingReplacedIsInFlight(t *testing.T) {
	db := open(t)
	started, finish := make(chan struct{}), make(chan struct{})
	refuse := answering(t, db.Pool(), http.StatusConflict, false, "taken")
	first := true
	g := newGuarded(t, db, idemhttp.Route{}, func(w http.ResponseWriter, r *http.Request) {
		if !first {
			close(started)
			<-finish
		}
		first = false
		refuse(w, r)
	})
	g.post(t.Context(), "one", "x")
	_, err := db.Pool().Exec(t.Context(), "update idem.idempotency_keys set created_at = created_at - interval '1 year', expires_at = now()")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() { g.post(t.Context(), "one", "x") })
	<-started
	if _, err := admin.ReleaseKey(t.Context(), db, release("one")); !errors.Is(err, admin.ErrInFlight) {
		t.Errorf("got error %v, want ErrInFlight", err)
	}
	close(finish)
	all.Wait()
	if audited(t, db) != 0 {
		t.Error("the audit tells of a release that was refused")
	}
}
