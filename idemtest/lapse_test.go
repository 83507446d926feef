package idemtest

import (
	"context"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// claimed is a database with a claimed key, a call under way, and the system outside.
func claimed(t *testing.T) *life {
	t.Helper()
	k := Kill{Outside: func(context.Context, *pgxpool.Pool) (http.Handler, error) { return http.NotFoundHandler(), nil }}
	l, err := k.lay(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { report(t, l.end()) })
	for _, sql := range []string{
		`insert into idem.idempotency_keys (scope, key, fence, state, fingerprint_version, fingerprint, lease_until, bound, expires_at)
		 values ('s', 'k', gen_random_uuid(), 'claimed', 1, sha256('r'), clock_timestamp() + interval '10 min', true, clock_timestamp() + interval '1 day')`,
		`insert into idem.applied_effects (scope, effect_key, status, fence, downstream_key, intended_at, call_until)
		 select 's', 'e', 'started', fence, 'd', clock_timestamp(), clock_timestamp() + interval '10 min' from idem.idempotency_keys`,
	} {
		if _, err := l.direct.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// wantOver wants the lease and the time of the call to be over, or neither.
func (l *life) wantOver(t *testing.T, want bool) {
	t.Helper()
	var lease, call bool
	err := l.direct.QueryRow(t.Context(), `select lease_until <= clock_timestamp(), call_until <= clock_timestamp()
		from idem.idempotency_keys, idem.applied_effects`).Scan(&lease, &call)
	if err != nil || lease != want || call != want {
		t.Errorf("over are the lease: %v, the call: %v (%v), want %v", lease, call, err, want)
	}
}

func TestLapse_endsTheLeasesOfTheDead(t *testing.T) {
	t.Parallel()
	l := claimed(t)
	if err := l.lapse(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.wantOver(t, true)
}

func TestLapse_leavesThemAloneWhileACallGoesOn(t *testing.T) {
	t.Parallel()
	l := claimed(t)
	l.outside.going.Add(1)
	if err := l.lapse(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.wantOver(t, false)
	l.outside.going.Add(-1)
	if err := l.lapse(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.wantOver(t, true)
}

func TestLapse_leavesThemAloneInsideATransaction(t *testing.T) {
	t.Parallel()
	l := claimed(t)
	tx, err := l.direct.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.lapse(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.wantOver(t, false)
}
