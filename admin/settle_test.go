package admin_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/admin"
)

// calledEffects are effects at every turn, each called by a claim of its own name: its
// lease and its call are over or not.
const calledEffects = `
insert into idem.idempotency_keys (scope, key, fence, state, fingerprint_version, fingerprint, created_at, lease_until, bound, expires_at)
select 'a', name, md5(name)::uuid, 'claimed', 1, sha256(''), now() - interval '1 h', now() + lease, true, now() + interval '1 h'
from  (values ('unknown', interval '-1 min'), ('unknown-calling', interval '-1 min'), ('left', interval '-1 min'),
              ('left-calling', interval '-1 min'), ('owned', interval '1 min'), ('taken-over', interval '1 min'),
              ('applied', interval '-1 min'), ('absent', interval '-1 min')) as k (name, lease);
insert into idem.applied_effects (scope, effect_key, status, result, fence, downstream_key, calls, created_at, intended_at, call_until,
       cause_door, cause_scope, cause_key, owner_door, owner_scope, owner_key)
select 'shop', name, status, result, case name when 'taken-over' then gen_random_uuid() else md5(name)::uuid end, 'd-' || name, 1,
       now() - n * interval '1 min', now(), now() + call, 'request', 'a', name, 'request', 'a', name
from  (values (1, 'unknown', 'unknown', null::bytea, interval '-1 s'), (2, 'unknown-calling', 'unknown', null, interval '1 min'),
              (3, 'left', 'started', null, interval '-1 s'), (4, 'left-calling', 'started', null, interval '1 min'),
              (5, 'owned', 'started', null, interval '-1 s'), (6, 'taken-over', 'started', null, interval '-1 s'),
              (7, 'applied', 'applied', '1', interval '-1 s'), (8, 'absent', 'absent', null, interval '-1 s')) as e (n, name, status, result, call)`

func withEffects(t *testing.T) *idem.DB {
	t.Helper()
	db := open(t)
	for sql := range strings.SplitSeq(calledEffects, ";") {
		if _, err := db.Pool().Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

func TestSettleEffect_onlyWhatNobodyCanKnowBetter(t *testing.T) {
	for key, want := range map[string]struct{ applied, absent error }{
		"unknown":         {nil, nil},
		"unknown-calling": {nil, admin.ErrCalling},
		"left":            {nil, nil},
		"left-calling":    {admin.ErrCalling, admin.ErrCalling},
		"owned":           {admin.ErrEffectInFlight, admin.ErrEffectInFlight},
		"taken-over":      {nil, nil},
		"applied":         {admin.ErrSettled, admin.ErrSettled},
		"absent":          {admin.ErrSettled, admin.ErrSettled},
		"nobody":          {admin.ErrNoEffect, admin.ErrNoEffect},
	} {
		for as, want := range map[admin.Status]error{admin.StatusApplied: want.applied, admin.StatusAbsent: want.absent} {
			t.Run(key+" as "+string(as), func(t *testing.T) {
				db := withEffects(t)
				before, _ := admin.ShowEffect(t.Context(), db, "shop", key)
				_, err := admin.SettleEffect(t.Context(), db, settlement(key, as))
				refused := want != nil && want != admin.ErrNoEffect
				if !errors.Is(err, want) || errors.Is(err, admin.ErrRefused) != refused {
					t.Errorf("got error %v, want %v", err, want)
				}
				after, _ := admin.ShowEffect(t.Context(), db, "shop", key)
				if lines := audited(t, db); (lines == 1) != (want == nil) || (after.Status == as && before.Status != as) != (want == nil) {
					t.Errorf("the effect is %s, with %d lines of audit", after.Status, lines)
				}
			})
		}
	}
}

func TestSettleEffect_wrongSettlementsAreRefused(t *testing.T) {
	db := withEffects(t)
	change := func(f func(*admin.Settlement)) admin.Settlement {
		s := settlement("unknown", admin.StatusApplied)
		f(&s)
		return s
	}
	for name, tt := range map[string]struct {
		s    admin.Settlement
		want error
	}{
		"no scope":          {change(func(s *admin.Settlement) { s.Scope = "" }), idem.ErrScopeInvalid},
		"no key":            {change(func(s *admin.Settlement) { s.Key = "" }), admin.ErrEffectKey},
		"a long key":        {change(func(s *admin.Settlement) { s.Key = strings.Repeat("k", 513) }), admin.ErrEffectKey},
		"no actor":          {change(func(s *admin.Settlement) { s.Actor = "" }), admin.ErrAudit},
		"no reason":         {change(func(s *admin.Settlement) { s.Reason = " " }), admin.ErrAudit},
		"neither":           {change(func(s *admin.Settlement) { s.As = "" }), admin.ErrSettlement},
		"unknown":           {change(func(s *admin.Settlement) { s.As = admin.StatusUnknown }), admin.ErrSettlement},
		"no result":         {change(func(s *admin.Settlement) { s.Result = nil }), admin.ErrSettlement},
		"no JSON":           {change(func(s *admin.Settlement) { s.Result = json.RawMessage("{id:1}") }), admin.ErrSettlement},
		"a large result":    {change(func(s *admin.Settlement) { s.Result = json.RawMessage(`"` + strings.Repeat("r", idem.MaxResult) + `"`) }), admin.ErrSettlement},
		"absent, corrected": {change(func(s *admin.Settlement) { s.As, s.Result, s.Correct = admin.StatusAbsent, nil, true }), admin.ErrSettlement},
		"negative calls":    {change(func(s *admin.Settlement) { s.Calls = -1 }), admin.ErrSettlement},
		"absent, a result":  {change(func(s *admin.Settlement) { s.As = admin.StatusAbsent }), admin.ErrSettlement},
	} {
		if _, err := admin.SettleEffect(t.Context(), db, tt.s); !errors.Is(err, tt.want) {
			t.Errorf("%s: got error %v, want %v", name, err, tt.want)
		}
	}
	if n := audited(t, db); n != 0 {
		t.Errorf("the audit has %d lines, want none", n)
	}
}

func TestSettleEffect_ofManyAtOnceOneWins(t *testing.T) {
	db := withEffects(t)
	var won, lost atomic.Int64
	var all sync.WaitGroup
	for i := range 24 {
		as := admin.StatusApplied
		if i%2 == 0 {
			as = admin.StatusAbsent
		}
		all.Go(func() {
			switch _, err := admin.SettleEffect(t.Context(), db, settlement("unknown", as)); {
			case err == nil:
				won.Add(1)
			case errors.Is(err, admin.ErrSettled):
				lost.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 || lost.Load() != 23 || audited(t, db) != 1 {
		t.Errorf("%d won, %d were told that it is settled, %d lines of audit; want 1, 23 and 1", won.Load(), lost.Load(), audited(t, db))
	}
}

// A line of the audit belongs to the key or to the effect, also when both have one
// name.
func TestAudit_keysAndEffectsAreToldApart(t *testing.T) {
	db := withEffects(t)
	_, err := db.Pool().Exec(t.Context(), `insert into idem.audit (actor, action, scope, key, reason) values
		('x', 'key_release', 'shop', 'unknown', 'of a key'), ('x', 'effect_settle', 'a', 'unknown', 'of an effect')`)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := admin.Why(t.Context(), db, "a", "unknown"); err != nil || len(s.Audit) != 0 {
		t.Errorf("got %+v (%v), want no line: they are of another's", s.Audit, err)
	}
	if c, err := admin.EffectChanges(t.Context(), db, "shop", "unknown"); err != nil || len(c) != 0 {
		t.Errorf("got %+v (%v), want no line: it is of a key", c, err)
	}
	if s, err := admin.Why(t.Context(), db, "shop", "unknown"); err != nil || len(s.Audit) != 1 || s.Audit[0].Reason != "of a key" {
		t.Errorf("got %+v (%v), want the line of the key", s.Audit, err)
	}
}

func effectNames(effects []admin.Effect) (names []string) {
	for _, e := range effects {
		names = append(names, e.Key)
	}
	return names
}

func TestListEffects_filters(t *testing.T) {
	db := withEffects(t)
	third, err := admin.ShowEffect(t.Context(), db, "shop", "left")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		filter admin.EffectFilter
		want   []string
	}{
		"a status":      {admin.EffectFilter{Status: admin.StatusUnknown}, []string{"unknown", "unknown-calling"}},
		"no such scope": {admin.EffectFilter{Scope: "a"}, nil},
		"a limit":       {admin.EffectFilter{Scope: "shop", Limit: 3}, []string{"unknown", "unknown-calling", "left"}},
		"a page":        {admin.EffectFilter{Before: third.Position(), Limit: 2}, []string{"left-calling", "owned"}},
	} {
		got, err := admin.ListEffects(t.Context(), db, tt.filter)
		if err != nil || !slices.Equal(effectNames(got), tt.want) {
			t.Errorf("%s: got %v and error %v, want %v", name, effectNames(got), err, tt.want)
		}
	}
	for _, filter := range []admin.EffectFilter{{Limit: -1}, {Limit: admin.MaxLimit + 1}, {Status: "done"}, {Scope: "a\x00b"}} {
		if _, err := admin.ListEffects(t.Context(), db, filter); !errors.Is(err, admin.ErrFilter) {
			t.Errorf("%+v: got error %v, want ErrFilter", filter, err)
		}
	}
}

func TestFindEffects_byKeyAndByDownstreamKey(t *testing.T) {
	db := withEffects(t)
	for _, name := range []string{"left", "d-left"} {
		if got, err := admin.FindEffects(t.Context(), db, name); err != nil || !slices.Equal(effectNames(got), []string{"left"}) {
			t.Errorf("%s: got %v and error %v", name, effectNames(got), err)
		}
	}
	if _, err := admin.FindEffects(t.Context(), db, "a b"); !errors.Is(err, admin.ErrEffectKey) {
		t.Errorf("got error %v, want ErrEffectKey", err)
	}
	if _, err := admin.ShowEffect(t.Context(), db, "a", "left"); !errors.Is(err, admin.ErrNoEffect) {
		t.Errorf("another scope: got error %v, want ErrNoEffect", err)
	}
}

func TestEffects_databaseGoneIsUnavailable(t *testing.T) {
	db := goneAfterOpen(t)
	_, list := admin.ListEffects(t.Context(), db, admin.EffectFilter{})
	_, find := admin.FindEffects(t.Context(), db, "e")
	_, show := admin.ShowEffect(t.Context(), db, "shop", "e")
	_, settle := admin.SettleEffect(t.Context(), db, settlement("e", admin.StatusAbsent))
	_, changes := admin.EffectChanges(t.Context(), db, "shop", "e")
	for name, err := range map[string]error{"list": list, "find": find, "show": show, "settle": settle, "changes": changes} {
		if !errors.Is(err, idem.ErrUnavailable) {
			t.Errorf("%s: got error %v, want ErrUnavailable", name, err)
		}
	}
}

// A result that the program cannot read is corrected in the same way as it came in;
// what a call has recorded is not a person's to change.
func TestSettleEffect_correctsAPersonsResultOnly(t *testing.T) {
	db := withEffects(t)
	for i, result := range []string{`"ch_1"`, `{"id":"ch_1"}`} {
		s := settlement("unknown", admin.StatusApplied)
		s.Result, s.Correct = json.RawMessage(result), i > 0
		if _, err := admin.SettleEffect(t.Context(), db, s); err != nil {
			t.Fatalf("%s: %v", result, err)
		}
		e, err := admin.ShowEffect(t.Context(), db, "shop", "unknown")
		if err != nil || string(e.Result) != result {
			t.Errorf("the result is %s (%v), want %s", e.Result, err, result)
		}
	}
	if _, err := admin.SettleEffect(t.Context(), db, settlement("unknown", admin.StatusAbsent)); !errors.Is(err, admin.ErrSettled) {
		t.Errorf("an applied effect was settled as absent: %v", err)
	}
	correction := settlement("unknown", admin.StatusApplied)
	if _, err := admin.SettleEffect(t.Context(), db, correction); !errors.Is(err, admin.ErrSettled) {
		t.Errorf("a settled effect was settled again, and not as a correction: %v", err)
	}
	correction.Correct = true
	for key, want := range map[string]error{
		"applied": admin.ErrUncorrectable, "absent": admin.ErrUncorrectable, "left": admin.ErrUncorrectable,
		"unknown-calling": admin.ErrUncorrectable, "nobody": admin.ErrNoEffect,
	} {
		correction.Key = key
		if _, err := admin.SettleEffect(t.Context(), db, correction); !errors.Is(err, want) {
			t.Errorf("%s: got error %v, want %v", key, err, want)
		}
	}
	if n := audited(t, db); n != 2 {
		t.Errorf("%d lines of audit, want 2", n)
	}
}

// An effect that a key has started and that was called under two others since is not
// told by its row; that the claim is bound is.
func TestReleaseKey_anEffectThatOthersHaveCalledSince(t *testing.T) {
	db := withEffects(t)
	_, err := db.Pool().Exec(t.Context(), `update idem.applied_effects set cause_key = 'first', owner_key = 'third' where effect_key = 'applied'`)
	if err != nil {
		t.Fatal(err)
	}
	r := release("applied")
	r.Scope = "a"
	if _, err := admin.ReleaseKey(t.Context(), db, r); !errors.Is(err, admin.ErrEffects) {
		t.Errorf("got error %v, want %v", err, admin.ErrEffects)
	}
}
