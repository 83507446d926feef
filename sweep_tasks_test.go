package idem_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgtest"
)

// finished inserts n tasks whose keys begin with prefix, in a status, kept until so long
// from now.
const finished = `insert into idem.tasks (queue, kind, task_key, payload, status, last_error, attempts, takes, fence, created_at, finished_at, expires_at)
	select 'q', 'k', $1 || i, '{}', $3, case when $3 = 'failed' then 'e' end, 1, 1, gen_random_uuid(),
	now() - interval '40 days', now() - interval '35 days', now() + $4::interval
	from generate_series(1, $2::integer) as i`

func rowsOf(t *testing.T, db *idem.DB, sql string, args ...any) (n int) {
	t.Helper()
	if err := db.Pool().QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func sweep(t *testing.T, db *idem.DB, want idem.Swept) {
	t.Helper()
	if swept, err := idem.Sweep(t.Context(), db); err != nil || swept != want {
		t.Errorf("swept %+v (%v), want %+v", swept, err, want)
	}
}

const begun = `insert into idem.applied_effects (scope, effect_key, status, fence, downstream_key, calls, intended_at, call_until, owner_door, owner_scope, owner_key)
	select 's', 'e:' || task_key, $2, fence, 'd', 1, now(), now(), 'task', queue, id::text from idem.tasks where task_key like $1`

func TestG1_finishedTasksAreSweptWhenTheirTimeIsOverAndNoOthers(t *testing.T) {
	db := open(t, pgtest.New(t), idem.Config{})
	for _, state := range []string{"done", "failed", "cancelled"} {
		exec(t, db.Pool(), finished, state+"-over:", 700, state, "-1 second")
		exec(t, db.Pool(), finished, state+"-kept:", 10, state, "1 hour")
	}
	exec(t, db.Pool(), finished, "unsettled:", 5, "failed", "-1 second")
	exec(t, db.Pool(), begun, "unsettled:%", "unknown")
	exec(t, db.Pool(), finished, "retried:", 3, "failed", "-1 second")
	exec(t, db.Pool(), begun, "retried:%", "started")
	exec(t, db.Pool(), finished, "settled:", 2, "failed", "-1 second")
	exec(t, db.Pool(), begun, "settled:%", "absent")
	exec(t, db.Pool(), `insert into idem.tasks (queue, kind, task_key, payload, created_at, updated_at, run_at)
		select 'q', 'k', 'pending:' || i, '', now() - interval '9 years', now() - interval '9 years', now() - interval '9 years' from generate_series(1, 20) as i`)
	exec(t, db.Pool(), `with f as (select gen_random_uuid() as fence), kept as (
			insert into idem.tasks (queue, kind, task_key, payload, created_at, status, takes, fence, lease_until)
			select 'q', 'k', 'running:' || i, '', now() - interval '9 years', 'running', 1, f.fence, now() - interval '1 min' from f, generate_series(1, 20) as i
			returning id)
		insert into idem.takes (fence, worker, queue, taken_at, lease_until, started, tasks)
		select f.fence, gen_random_uuid(), 'q', now() - interval '9 years', now() - interval '2 days', 0, array(select id from kept) from f`)

	sweep(t, db, idem.Swept{Tasks: 2102})
	for like, want := range map[string]int{"%-over:%": 0, "%-kept:%": 30, "unsettled:%": 5, "retried:%": 3, "settled:%": 0, "pending:%": 20, "running:%": 20} {
		if got := rowsOf(t, db, "select count(*) from idem.tasks where task_key like $1", like); got != want {
			t.Errorf("%d tasks like %s are left, want %d", got, like, want)
		}
	}
	exec(t, db.Pool(), "update idem.applied_effects set status = 'absent'")
	sweep(t, db, idem.Swept{Tasks: 8}) // what was unsettled
}

func TestG3_manySweepersCountEachTaskOnce(t *testing.T) {
	db := open(t, pgtest.New(t), idem.Config{})
	exec(t, db.Pool(), finished, "over:", 5000, "done", "-1 second")
	exec(t, db.Pool(), left, 3000, "-25 hours")
	var total, takes atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			swept, err := idem.Sweep(t.Context(), db)
			if err != nil {
				t.Error(err)
			}
			total.Add(swept.Tasks)
			takes.Add(swept.Takes)
		})
	}
	all.Wait()
	// One that met only locked rows leaves them to the others' next sweep.
	swept, err := idem.Sweep(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	if tasks, takes := total.Load()+swept.Tasks, takes.Load()+swept.Takes; tasks != 5000 || takes != 3000 {
		t.Errorf("the sweeps counted %d tasks and %d takes, want 5000 and 3000", tasks, takes)
	}
	if n := rowsOf(t, db, "select count(*) from idem.tasks") + rowsOf(t, db, "select count(*) from idem.takes"); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

// left are takes that nobody has ended, with leases that end so long from now.
const left = `insert into idem.takes (fence, worker, queue, taken_at, lease_until, started, tasks)
	select gen_random_uuid(), gen_random_uuid(), 'q', now() - interval '3 days', now() + $2::interval, 0, array[i] from generate_series(1, $1::integer) as i`

func TestG1_takesAreSweptWhenNobodyCanLookAtThemAnyMore(t *testing.T) {
	db := open(t, pgtest.New(t), idem.Config{})
	exec(t, db.Pool(), left, 10, "-25 hours")
	exec(t, db.Pool(), left, 20, "-23 hours")
	exec(t, db.Pool(), left, 30, "1 min")
	exec(t, db.Pool(), finished, "over:", 1, "done", "1 hour")
	exec(t, db.Pool(), `insert into idem.takes (fence, worker, queue, taken_at, lease_until, started, tasks)
		select fence, gen_random_uuid(), queue, now(), now() - interval '2 days', 1, array[id] from idem.tasks`)
	sweep(t, db, idem.Swept{Takes: 11})
	if n := rowsOf(t, db, "select count(*) from idem.takes"); n != 50 {
		t.Errorf("%d takes are left, want 50", n)
	}
}

// A dead letter that somebody retries after the sweep's snapshot, and before its delete,
// stays; so does a task that is put off, and one that is locked.
func TestG1_aTaskIsLookedAtAgainBeforeItIsDeleted(t *testing.T) {
	url := pgtest.Direct(t, pgtest.NewURL(t))
	other := pgtest.Pool(t, url)
	exec(t, other, slowComparison)
	exec(t, other, finished, "retried:", 1, "failed", "-1 second")
	exec(t, other, finished, "longer:", 1, "failed", "-1 second")
	gate, err := other.Acquire(t.Context())
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
	waiting(t, other)
	exec(t, other, "update idem.tasks set status = 'pending', fence = null, finished_at = null, expires_at = null where task_key = 'retried:1'")
	exec(t, other, "update idem.tasks set expires_at = now() + interval '1 hour' where task_key = 'longer:1'")
	if _, err := gate.Exec(t.Context(), "select pg_advisory_unlock(4711)"); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil || swept.Tasks != 0 {
		t.Errorf("swept %+v (%v), want nothing: one was retried, one is kept longer", swept, err)
	}
}

func TestG1_aLockedTaskIsLeftToTheNextSweep(t *testing.T) {
	db := open(t, pgtest.New(t), idem.Config{})
	exec(t, db.Pool(), finished, "over:", 2, "failed", "-1 second")
	tx, err := db.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), "select from idem.tasks where task_key = 'over:1' for update"); err != nil {
		t.Fatal(err)
	}
	sweep(t, db, idem.Swept{Tasks: 1})
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	sweep(t, db, idem.Swept{Tasks: 1})
}
