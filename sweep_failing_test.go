package idem_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5/pgxpool"
)

// sweepable is a database with two keys, a tombstone to be, three tasks and four takes
// whose time is over, and what the handle on it has told.
func sweepable(t *testing.T) (db *idem.DB, told func() []idem.Event) {
	t.Helper()
	var mu sync.Mutex
	var events []idem.Event
	db = open(t, pgtest.New(t), idem.Config{Observe: func(_ context.Context, e idem.Event) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, e)
	}})
	exec(t, db.Pool(), rows, "over", 2, "-1 second", nil)
	exec(t, db.Pool(), rows, "entomb", 1, "-1 second", "1 hour")
	exec(t, db.Pool(), finished, "over:", 3, "done", "-1 second")
	exec(t, db.Pool(), left, 4, "-25 hours")
	return db, func() []idem.Event {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(events)
	}
}

// wantFailed fails unless what failed is told once by the events, and by err, by name.
func wantFailed(t *testing.T, told []idem.Event, err error, want map[string]string) {
	t.Helper()
	failed := make(map[string]error)
	for _, e := range told {
		if e.Err != nil {
			failed[e.Table] = errors.Join(failed[e.Table], e.Err)
		}
	}
	if got, want := slices.Sorted(maps.Keys(failed)), slices.Sorted(maps.Keys(want)); !slices.Equal(got, want) {
		t.Errorf("%v are told to have failed, want %v: %v", got, want, told)
	}
	if len(want) > 0 && !errors.Is(err, idem.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	for table, says := range want {
		if e := failed[table]; e == nil || !strings.Contains(e.Error(), says) || !errors.Is(e, idem.ErrUnavailable) {
			t.Errorf("the event of %s says %v, want ErrUnavailable with %q", table, e, says)
		}
		if strings.Count(err.Error(), says) != 1 {
			t.Errorf("the error is %q, want %q in it once", err, says)
		}
	}
}

func TestSweep_aTableThatIsLockedKeepsNoneOfTheOthersFromIt(t *testing.T) {
	db, told := sweepable(t)
	unlock := lockKeys(t, db.Pool())
	var swept idem.Swept
	done := make(chan error, 1)
	go func() {
		var err error
		swept, err = idem.Sweep(t.Context(), db)
		done <- err
	}()
	err := cancelled(t, db.Pool(), done)
	if want := (idem.Swept{Tasks: 3, Takes: 4}); swept != want {
		t.Errorf("swept %+v, want %+v", swept, want)
	}
	wantFailed(t, told(), err, map[string]string{"idempotency_keys": "sweep idempotency_keys: ERROR"})
	unlock()
	sweep(t, db, idem.Swept{Deleted: 2, Stripped: 1})
}

// lockKeys has another session hold the table of the keys for itself.
func lockKeys(t *testing.T, pool *pgxpool.Pool) (unlock func()) {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	unlock = func() { _ = tx.Rollback(context.Background()) }
	t.Cleanup(unlock)
	if _, err := tx.Exec(t.Context(), "lock table idem.idempotency_keys in access exclusive mode"); err != nil {
		t.Fatal(err)
	}
	return unlock
}

// cancelled ends what waits for the keys' table, as its limit would in 10 s, until the
// sweep is over, and returns its error.
func cancelled(t *testing.T, pool *pgxpool.Pool, done <-chan error) error {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-ticker.C:
			exec(t, pool, "select pg_cancel_backend(pid) from pg_locks where locktype = 'relation' and relation = 'idem.idempotency_keys'::regclass and not granted")
		}
	}
}

func TestSweep_endsAtOnceWithItsContext(t *testing.T) {
	db, told := sweepable(t)
	lockKeys(t, db.Pool())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := idem.Sweep(ctx, db)
		done <- err
	}()
	waiting(t, db.Pool())
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || errors.Is(err, idem.ErrUnavailable) {
		t.Errorf("got %v, want the context's error", err)
	}
	if e := told(); len(e) != 1 || e[0].Table != "idempotency_keys" || !errors.Is(e[0].Err, context.Canceled) {
		t.Errorf("told %v, want the keys' table only", e)
	}
}

// refusing is a trigger by which a table takes no statement of a kind.
const refusing = `create or replace function refuse() returns trigger language plpgsql as
	$$ begin raise exception 'refused' using errcode = 'out_of_memory'; end $$;
	create trigger refuse before `

func TestSweep_whatFailsIsToldAndTheRestIsDone(t *testing.T) {
	for name, c := range map[string]struct {
		refused []string
		want    idem.Swept
		failed  map[string]string
	}{
		"nothing": {nil, idem.Swept{Deleted: 2, Stripped: 1, Tasks: 3, Takes: 4}, nil},
		"to strip": {[]string{"update on idem.idempotency_keys"}, idem.Swept{Deleted: 2, Tasks: 3, Takes: 4},
			map[string]string{"idempotency_keys": "strip idempotency_keys: ERROR"}},
		"the keys": {[]string{"delete on idem.idempotency_keys"}, idem.Swept{Stripped: 1, Tasks: 3, Takes: 4},
			map[string]string{"idempotency_keys": "sweep idempotency_keys: ERROR"}},
		"the tasks": {[]string{"delete on idem.tasks"}, idem.Swept{Deleted: 2, Stripped: 1, Takes: 4},
			map[string]string{"tasks": "sweep tasks: ERROR"}},
		"two tables": {[]string{"delete on idem.idempotency_keys", "delete on idem.takes"}, idem.Swept{Stripped: 1, Tasks: 3},
			map[string]string{"idempotency_keys": "sweep idempotency_keys: ERROR", "takes": "sweep takes: ERROR"}},
	} {
		t.Run(name, func(t *testing.T) {
			db, told := sweepable(t)
			for _, on := range c.refused {
				exec(t, db.Pool(), refusing+on+" for each row execute function refuse()")
			}
			swept, err := idem.Sweep(t.Context(), db)
			if swept != c.want || (err == nil) != (c.failed == nil) {
				t.Errorf("swept %+v (%v), want %+v", swept, err, c.want)
			}
			wantFailed(t, told(), err, c.failed)
		})
	}
}
