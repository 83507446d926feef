package idem_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgtest"
)

// rows inserts n answered keys named by prefix, made and expiring so long ago.
const rows = `insert into idem.idempotency_keys (scope, key, fence, state, fingerprint_version, fingerprint,
	response_status, response_headers, response_body, created_at, expires_at, tombstone_until)
	select 's', $1 || i, gen_random_uuid(), 'answered', 1, sha256('x'), 201, '{}', 'body',
	now() - interval '100 days', now() + $3::interval, now() + $4::interval
	from generate_series(1, $2::integer) as i`

func keysIn(t *testing.T, db *idem.DB, where string) (n int) {
	t.Helper()
	if err := db.Pool().QueryRow(context.Background(), "select count(*) from idem.idempotency_keys where "+where).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestSweep_removesWhatIsOverAndNothingElse(t *testing.T) {
	db := open(t, pgtest.New(t), idem.Config{})
	exec(t, db.Pool(), rows, "over", 2500, "-1 second", nil)
	exec(t, db.Pool(), rows, "live", 10, "1 hour", nil)
	exec(t, db.Pool(), rows, "entomb", 20, "-1 second", "1 hour")
	exec(t, db.Pool(), rows, "dead", 30, "-2 seconds", "-1 second")
	exec(t, db.Pool(), `insert into idem.idempotency_keys (scope, key, fence, state, fingerprint_version, fingerprint, created_at, expires_at)
		values ('s', 'unknown', gen_random_uuid(), 'unknown', 1, sha256('x'), now() - interval '10 years', 'infinity')`)

	swept, err := idem.Sweep(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	if want := (idem.Swept{Deleted: 2530, Stripped: 20}); swept != want {
		t.Errorf("swept %+v, want %+v", swept, want)
	}
	for where, want := range map[string]int{
		"key like 'live%' and response_body = 'body'": 10,
		"key like 'entomb%' and state = 'tombstone' and response_body is null and expires_at > now() and tombstone_until is null": 20,
		"key = 'unknown'": 1,
		"true":            31,
	} {
		if got := keysIn(t, db, where); got != want {
			t.Errorf("%d rows where %s, want %d", got, where, want)
		}
	}
}

func TestSweep_manyAtOnceCountEachRowOnce(t *testing.T) {
	db := open(t, pgtest.New(t), idem.Config{})
	exec(t, db.Pool(), rows, "over", 5000, "-1 second", nil)
	var deleted atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			swept, err := idem.Sweep(t.Context(), db)
			if err != nil {
				t.Error(err)
			}
			deleted.Add(swept.Deleted)
		})
	}
	all.Wait()
	// One that met only locked rows leaves them to the others' next sweep.
	swept, err := idem.Sweep(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	if n := deleted.Load() + swept.Deleted; n != 5000 {
		t.Errorf("the sweeps counted %d rows, want 5000", n)
	}
	if n := keysIn(t, db, "true"); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

func TestSweep_leavesALockedKeyAndOneWhoseTimeIsNotOver(t *testing.T) {
	db := open(t, pgtest.New(t), idem.Config{})
	exec(t, db.Pool(), rows, "k", 1, "-1 second", nil)
	tx, err := db.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), answerAnew); err != nil {
		t.Fatal(err)
	}
	swept, err := idem.Sweep(t.Context(), db) // skips the locked row
	if err != nil || swept.Deleted != 0 {
		t.Errorf("swept %+v (%v) while the row was locked, want nothing", swept, err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if swept, err = idem.Sweep(t.Context(), db); err != nil || swept.Deleted != 0 {
		t.Errorf("swept %+v (%v) a key whose time is not over", swept, err)
	}
}

const answerAnew = "update idem.idempotency_keys set expires_at = now() + interval '1 hour'"

// slowComparison is an operator that stands before PostgreSQL's own in the path
// of the sweep's session: the look for what is over stops at the gate, with the
// old row in its snapshot.
const slowComparison = `create schema slow;
	create function slow.le(a timestamptz, b timestamptz) returns boolean language plpgsql as $$ begin
		if current_query() like '%delete from idem.%' then
			perform pg_advisory_xact_lock_shared(4711);
		end if;
		return a operator(pg_catalog.<=) b;
	end $$;
	create operator slow.<= (leftarg = timestamptz, rightarg = timestamptz, function = slow.le)`

// A key that is answered anew after the sweep's snapshot, and before its delete,
// stays.
func TestSweep_looksAgainBeforeItDeletes(t *testing.T) {
	url := pgtest.Direct(t, pgtest.NewURL(t))
	requests := pgtest.Pool(t, url)
	exec(t, requests, slowComparison)
	exec(t, requests, rows, "k", 1, "-1 second", nil)
	gate, err := requests.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer gate.Release()
	if _, err := gate.Exec(t.Context(), "select pg_advisory_lock(4711)"); err != nil {
		t.Fatal(err)
	}
	db := open(t, pgtest.Pool(t, url+"&search_path=slow,pg_catalog"), idem.Config{})
	var swept idem.Swept
	done := make(chan error, 1)
	go func() {
		var err error
		swept, err = idem.Sweep(t.Context(), db)
		done <- err
	}()
	waiting(t, requests)
	exec(t, requests, answerAnew)
	if _, err := gate.Exec(t.Context(), "select pg_advisory_unlock(4711)"); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil || swept.Deleted != 0 {
		t.Errorf("swept %+v (%v), want nothing: the key was answered anew", swept, err)
	}
	if n := keysIn(t, db, "expires_at operator(pg_catalog.>) now()"); n != 1 {
		t.Errorf("%d keys are left, want the one that was answered anew", n)
	}
}
