package queue_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// wide is a pool with room for many transactions at once.
func wide(t *testing.T) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(pgtest.NewURL(t))
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 20
	return pgtest.PoolWith(t, config)
}

// begun is a transaction that is rolled back at the end of the test.
func begun(t *testing.T, pool *pgxpool.Pool, level pgx.TxIsoLevel) pgx.Tx {
	t.Helper()
	tx, err := pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	// A snapshot is taken by the first statement.
	if _, err := tx.Exec(t.Context(), "select count(*) from idem.tasks"); err != nil {
		t.Fatal(err)
	}
	return tx
}

func commit(t *testing.T, tx pgx.Tx) {
	t.Helper()
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

type told struct {
	queue.Enqueued
	err error
}

// waiting enqueues beside the test, and returns once that waits for a transaction.
func waiting(t *testing.T, pool *pgxpool.Pool, db queue.Conn, key string, p parcel) <-chan told {
	t.Helper()
	ended := make(chan told, 1)
	go func() {
		e, err := parcelSend.Enqueue(t.Context(), db, key, p)
		ended <- told{e, err}
	}()
	eventually(t, pool, `select exists (select from pg_locks join pg_stat_activity using (pid)
		where datname = current_database() and locktype = 'transactionid' and not granted)`)
	return ended
}

func TestT1_fromTwoConnectionsAtOnceOneIsNew(t *testing.T) {
	pool := wide(t)
	for _, c := range []struct {
		name   string
		second parcel
		commit bool
		want   queue.Outcome
	}{
		{"committed", parcel{Order: 1}, true, queue.Duplicate},
		{"committed-as-another", parcel{Order: 2}, true, queue.Mismatch},
		{"rolled-back", parcel{Order: 2}, false, queue.New},
	} {
		first := begun(t, pool, pgx.ReadCommitted)
		e := enqueued(t, parcelSend, first, c.name, parcel{Order: 1}, queue.New)
		second := begun(t, pool, pgx.ReadCommitted)
		inTx := waiting(t, pool, second, c.name, c.second)
		if c.commit {
			commit(t, first)
		} else if err := first.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := <-inTx
		if got.Outcome != c.want || (got.ID == e.ID) != c.commit || got.Status != queue.StatusPending || errors.Is(got.err, queue.ErrMismatch) != (c.want == queue.Mismatch) {
			t.Errorf("%s: got %+v, want %s of %d", c.name, got, c.want, e.ID)
		}
		commit(t, second) // a mismatch leaves the transaction as it is
		if n := ask[int](t, pool, "select count(*) from idem.tasks where task_key = $1", c.name); n != 1 {
			t.Errorf("%s: %d tasks, want 1", c.name, n)
		}
	}
}

func TestT1_aHundredAtOnceMakeOneTask(t *testing.T) {
	pool := wide(t)
	for round := range 5 {
		key := fmt.Sprint("parcel:", round)
		var mu sync.Mutex
		outcomes, ids := map[queue.Outcome]int{}, map[int64]bool{}
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				e, err := parcelSend.Enqueue(t.Context(), pool, key, parcel{Order: round})
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				outcomes[e.Outcome]++
				ids[e.ID] = true
			})
		}
		all.Wait()
		if outcomes[queue.New] != 1 || outcomes[queue.Duplicate] != 99 || len(ids) != 1 {
			t.Errorf("got %v of %v, want one new, and all of one task", outcomes, ids)
		}
	}
}

func TestT1_onAPoolItDoesNotWaitForEver(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for 5 s")
	}
	t.Parallel()
	pool := wide(t)
	frozen := begun(t, pool, pgx.ReadCommitted)
	enqueued(t, parcelSend, frozen, "parcel:1", parcel{Order: 1}, queue.New)
	ended := waiting(t, pool, pool, "parcel:1", parcel{Order: 1})
	select {
	case got := <-ended:
		if !errors.Is(got.err, idem.ErrUnavailable) {
			t.Errorf("got %+v, want unavailable", got)
		}
	case <-time.After(20 * time.Second):
		t.Error("it still waits")
	}
	commit(t, frozen)
	enqueued(t, parcelSend, pool, "parcel:1", parcel{Order: 1}, queue.Duplicate)
	if limit := ask[string](t, pool, "select current_setting('lock_timeout')"); limit != "0" {
		t.Errorf("the connection was left with a lock_timeout of %s", limit)
	}
	// In a caller's transaction the caller's limit counts, and is left alone.
	tx := begun(t, pool, pgx.ReadCommitted)
	if _, err := tx.Exec(t.Context(), "set local lock_timeout = '3s'"); err != nil {
		t.Fatal(err)
	}
	enqueued(t, parcelSend, tx, "parcel:2", parcel{Order: 2}, queue.New)
	var limit string
	if err := tx.QueryRow(t.Context(), "select current_setting('lock_timeout')").Scan(&limit); err != nil || limit != "3s" {
		t.Errorf("the caller's lock_timeout is %s (%v), want 3s", limit, err)
	}
}

func TestT1_batchesInAnyOrderDoNotDeadlock(t *testing.T) {
	pool := wide(t)
	const keys = 300
	var all sync.WaitGroup
	var mu sync.Mutex
	fresh := 0
	for range 6 {
		all.Go(func() {
			for round := range 5 {
				var many []queue.Task[parcel]
				for _, i := range rand.Perm(keys) {
					many = append(many, queue.Task[parcel]{Key: fmt.Sprintf("parcel:%d:%d", round, i), Payload: parcel{Order: i}})
				}
				told, err := parcelSend.EnqueueMany(t.Context(), pool, many...)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				for _, e := range told {
					if e.Outcome == queue.New {
						fresh++
					}
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if n := ask[int](t, pool, "select count(*) from idem.tasks"); n != 5*keys || fresh != n {
		t.Errorf("%d tasks, of which %d were told to be new, want %d", n, fresh, 5*keys)
	}
	if n := ask[int](t, pool, "select deadlocks from pg_stat_database where datname = current_database()"); n != 0 {
		t.Errorf("%d deadlocks", n)
	}
}

func TestT1_T2_aboveReadCommittedItIsRunAgain(t *testing.T) {
	pool := wide(t)
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		for _, c := range []struct {
			name   string
			second parcel
			want   queue.Outcome
		}{{"same", parcel{Order: 1}, queue.Duplicate}, {"another", parcel{Order: 2}, queue.Mismatch}} {
			key := fmt.Sprintf("%.4s:%s", level, c.name)
			tx := begun(t, pool, level)
			enqueued(t, parcelSend, pool, key, parcel{Order: 1}, queue.New)
			got, err := parcelSend.Enqueue(t.Context(), tx, key, c.second)
			if !rerunnable(err) || errors.Is(err, queue.ErrMismatch) || got.Outcome != "" {
				t.Fatalf("%s: got %+v, %v, want 40001", key, got, err)
			}
			_ = tx.Rollback(t.Context())
			again := begun(t, pool, level)
			enqueued(t, parcelSend, again, key, c.second, c.want)
			commit(t, again)

			// The other one is still under way when this one asks.
			key += ":waits"
			first, second := begun(t, pool, level), begun(t, pool, level)
			enqueued(t, parcelSend, first, key, parcel{Order: 1}, queue.New)
			ended := waiting(t, pool, second, key, c.second)
			commit(t, first)
			if got := <-ended; !rerunnable(got.err) || got.Outcome != "" {
				t.Errorf("%s: got %+v, want 40001", key, got)
			}
		}
	}
}

func TestT4_aboveReadCommittedAnExpiredKeyIsRunAgain(t *testing.T) {
	pool := wide(t)
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		key := fmt.Sprintf("%.4s", level)
		e := enqueued(t, parcelSend, pool, key, parcel{Order: 1}, queue.New)
		became(t, pool, e.ID, queue.StatusDone)
		change(t, pool, "update idem.tasks set expires_at = clock_timestamp() where id = $1", e.ID)
		first, second := begun(t, pool, level), begun(t, pool, level)
		enqueued(t, parcelSend, first, key, parcel{Order: 2}, queue.New)
		ended := waiting(t, pool, second, key, parcel{Order: 3})
		commit(t, first)
		if got := <-ended; !rerunnable(got.err) || got.Outcome != "" {
			t.Errorf("%s: got %+v, want 40001", key, got)
		}
		if n := ask[int](t, pool, "select count(*) from idem.tasks where task_key = $1", key); n != 1 {
			t.Errorf("%s: %d tasks, want 1", key, n)
		}
	}
}

func rerunnable(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "40001" && !errors.Is(err, idem.ErrUnavailable)
}

// TestT1_onAPoolAboveReadCommitted is for databases whose default is another level: there
// the transaction is ours to run again.
func TestT1_onAPoolAboveReadCommitted(t *testing.T) {
	url := pgtest.NewURL(t)
	config, err := pgxpool.ParseConfig(pgtest.Direct(t, url))
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.RuntimeParams["default_transaction_isolation"] = "serializable"
	config.MaxConns = 20
	pool := pgtest.PoolWith(t, config)
	for round := range 20 {
		var all sync.WaitGroup
		var mu sync.Mutex
		outcomes := map[queue.Outcome]int{}
		for range 20 {
			all.Go(func() {
				e, err := parcelSend.Enqueue(t.Context(), pool, fmt.Sprint("parcel:", round), parcel{Order: 1})
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				outcomes[e.Outcome]++
			})
		}
		all.Wait()
		if outcomes[queue.New] != 1 || outcomes[queue.Duplicate] != 19 {
			t.Fatalf("got %v, want one new", outcomes)
		}
	}
}

// meddled is a pool on which something happens before each statement but the first.
type meddled struct {
	*pgxpool.Pool
	n      int
	before func(n int)
}

func (m *meddled) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if m.n++; m.n > 1 {
		m.before(m.n)
	}
	return m.Pool.Query(ctx, sql, args...)
}

func TestT4_T5_keysThatAreForgottenMeanwhile(t *testing.T) {
	pool := wide(t)
	forget := func() {
		t.Helper()
		if _, err := pool.Exec(t.Context(), "delete from idem.tasks"); err != nil {
			t.Fatal(err)
		}
	}
	// Between the statement that has met the key and the one that looks for it.
	first := enqueued(t, parcelSend, pool, "parcel:1", parcel{Order: 1}, queue.New)
	again := enqueued(t, parcelSend, &meddled{Pool: pool, before: func(n int) {
		if n == 2 {
			forget()
		}
	}}, "parcel:1", parcel{Order: 2}, queue.New)
	if again.ID == first.ID {
		t.Errorf("got the task that was forgotten, %d", first.ID)
	}
	// Expired when it is looked at, and revived or swept before it is forgotten.
	became(t, pool, again.ID, queue.StatusFailed)
	change(t, pool, "update idem.tasks set expires_at = clock_timestamp() where id = $1", again.ID)
	revived := enqueued(t, parcelSend, &meddled{Pool: pool, before: func(n int) {
		if n == 3 {
			change(t, pool, "update idem.tasks set status = 'pending', finished_at = null, expires_at = null, fence = null where id = $1", again.ID)
		}
	}}, "parcel:1", parcel{Order: 2}, queue.Duplicate)
	if revived.ID != again.ID || revived.Status != queue.StatusPending {
		t.Errorf("got %+v, want the task %d that was retried", revived, again.ID)
	}
	// Twice in one call, and done and forgotten before the second is looked at.
	forget()
	m := &meddled{Pool: pool, before: func(int) { forget() }}
	told, err := parcelSend.EnqueueMany(t.Context(), m, queue.Task[parcel]{Key: "k", Payload: parcel{Order: 1}},
		queue.Task[parcel]{Key: "k", Payload: parcel{Order: 1}}, queue.Task[parcel]{Key: "k", Payload: parcel{Order: 2}})
	if !errors.Is(err, queue.ErrMismatch) || told[0].Outcome != queue.New || told[1].Outcome != queue.Duplicate || told[2].Outcome != queue.Mismatch ||
		told[1].ID != told[0].ID || told[2].ID != told[0].ID {
		t.Errorf("got %+v, %v, want one new, a duplicate and a mismatch of it", told, err)
	}
	// It ends, whatever comes and goes.
	forget()
	enqueued(t, parcelSend, pool, "k", parcel{Order: 1}, queue.New)
	_, err = parcelSend.Enqueue(t.Context(), &meddled{Pool: pool, before: func(n int) {
		forget()
		if n%2 == 1 {
			enqueued(t, parcelSend, pool, "k", parcel{Order: 1}, queue.New)
		}
	}}, "k", parcel{Order: 1})
	if !errors.Is(err, idem.ErrUnavailable) {
		t.Errorf("a key that comes and goes: got %v, want unavailable", err)
	}
}

func TestT4_twoAtOnceOnAnExpiredKey(t *testing.T) {
	pool := wide(t)
	for round := range 10 {
		key := fmt.Sprint("parcel:", round)
		e := enqueued(t, parcelSend, pool, key, parcel{Order: 1}, queue.New)
		became(t, pool, e.ID, queue.StatusDone)
		change(t, pool, "update idem.tasks set expires_at = clock_timestamp() where id = $1", e.ID)
		var all sync.WaitGroup
		var mu sync.Mutex
		outcomes, ids := map[queue.Outcome]int{}, map[int64]bool{}
		for range 20 {
			all.Go(func() {
				got, err := parcelSend.Enqueue(t.Context(), pool, key, parcel{Order: 2})
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				outcomes[got.Outcome]++
				ids[got.ID] = true
			})
		}
		all.Wait()
		if outcomes[queue.New] != 1 || len(ids) != 1 || ids[e.ID] {
			t.Errorf("got %v of %v, want one new, and all of one task other than %d", outcomes, ids, e.ID)
		}
	}
}

// TestT1_aKilledEnqueuerLeavesTheKeyFree ends the session of the first while the second
// waits for it.
func TestT1_aKilledEnqueuerLeavesTheKeyFree(t *testing.T) {
	pool := wide(t)
	first := begun(t, pool, pgx.ReadCommitted)
	e := enqueued(t, parcelSend, first, "parcel:1", parcel{Order: 1}, queue.New)
	var pid int
	if err := first.QueryRow(t.Context(), "select pg_backend_pid()").Scan(&pid); err != nil {
		t.Fatal(err)
	}
	ended := waiting(t, pool, pool, "parcel:1", parcel{Order: 2})
	change(t, pool, "select pg_terminate_backend($1)", pid)
	select {
	case got := <-ended:
		if got.Outcome != queue.New || got.ID == e.ID {
			t.Errorf("got %+v, want a new task", got)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for a dead one")
	}
}

// TestT1_whatNoStandbyConfirmsIsNotTakenForEnqueued has a server that waits for a standby
// that never comes, and cancels that wait: committed here, and lost by a failover.
func TestT1_whatNoStandbyConfirmsIsNotTakenForEnqueued(t *testing.T) {
	url := pgtest.Direct(t, pgtest.NewURL(t))
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	idem.Prepare(config)
	pool, operator := pgtest.PoolWith(t, config), pgtest.Pool(t, url)
	names := func(sql string, want string) {
		t.Helper()
		for _, sql := range []string{sql, "select pg_reload_conf()"} {
			if _, err := operator.Exec(context.Background(), sql); err != nil {
				t.Fatal(err)
			}
		}
		for now := "?"; now != want; { // a reload takes a moment
			if err := operator.QueryRow(context.Background(), "show synchronous_standby_names").Scan(&now); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Cleanup(func() { names("alter system reset synchronous_standby_names", "") }) // also if the test fails
	names("alter system set synchronous_standby_names = 'nobody'", "nobody")
	ended := make(chan told, 1)
	go func() {
		e, err := parcelSend.Enqueue(context.Background(), pool, "parcel:1", parcel{Order: 1})
		ended <- told{e, err}
	}()
	eventually(t, operator, "select count(pg_cancel_backend(pid)) > 0 from pg_stat_activity where wait_event = 'SyncRep' and datname = current_database()")
	got := <-ended
	if !errors.Is(got.err, idem.ErrUnavailable) {
		t.Errorf("got %+v, want unavailable", got)
	}
	enqueued(t, parcelSend, pool, "parcel:1", parcel{Order: 1}, queue.Duplicate)
}
