package pgsql_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/idem-go/idem/internal/pgsql/effects"
	"github.com/idem-go/idem/internal/pgsql/tasks"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// conn is a pool or a transaction.
type conn interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

const enqueue = `insert into idem.tasks (queue, kind, payload) select 'q', 'k', '{}' from generate_series(1, $1::integer)`

func run(t *testing.T, db conn, sql string, args ...any) int64 {
	t.Helper()
	tag, err := db.Exec(t.Context(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	return tag.RowsAffected()
}

// take takes up to limit tasks of queue q, of which none starts at once.
func take(t *testing.T, db conn, fence uuid.UUID, limit int, lease float64) int64 {
	t.Helper()
	return run(t, db, tasks.Take, "q", fence, uuid.New(), []string{"k"}, []float64{lease}, limit, 0,
		[]int16{0}, []time.Time{time.Unix(0, 0)}, []int64{0})
}

// Taking, renewing and giving back rewrite no index: no index mentions what they change,
// and a page has room for the new row.
func TestTaskTake_rewritesNoIndex(t *testing.T) {
	pool, fence := pgtest.New(t), uuid.New()
	run(t, pool, enqueue, 500)
	wantHot(t, pool, func(tx pgx.Tx) { take(t, tx, fence, 200, 60) })
	var queues []string
	var ids []int64
	err := pool.QueryRow(t.Context(), "select array_agg(queue::text), array_agg(id) from idem.tasks where fence = $1", fence).Scan(&queues, &ids)
	if err != nil || len(ids) != 200 {
		t.Fatalf("took %d tasks (%v), want 200", len(ids), err)
	}
	fences, leases, whole := slices.Repeat([]string{fence.String()}, 200), slices.Repeat([]float64{60}, 200), slices.Repeat([]bool{true}, 200)
	wantHot(t, pool, func(tx pgx.Tx) { run(t, tx, tasks.Renew, queues, ids, fences, leases, whole) })
	wantHot(t, pool, func(tx pgx.Tx) { run(t, tx, tasks.Return, queues, ids, fences) })
}

// wantHot fails unless do, which updates 200 tasks, leaves the indexes alone.
func wantHot(t *testing.T, pool *pgxpool.Pool, do func(pgx.Tx)) {
	t.Helper()
	const counted = "select n_tup_upd, n_tup_hot_upd from pg_stat_xact_user_tables where relid = 'idem.tasks'::regclass"
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		var before, hotBefore, updated, hot int
		if err := tx.QueryRow(t.Context(), counted).Scan(&before, &hotBefore); err != nil {
			return err
		}
		do(tx)
		err := tx.QueryRow(t.Context(), counted).Scan(&updated, &hot)
		if updated, hot = updated-before, hot-hotBefore; updated != 200 || hot < 150 { // what a full page does not take goes elsewhere
			t.Errorf("%d of %d updates have left the indexes alone, want nearly all of 200", hot, updated)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A renewal that is only late is in time; one of a take that another worker has looked at
// finds nothing.
func TestTaskRenew_aLateLeaseAndNotALostOne(t *testing.T) {
	pool, fence := pgtest.New(t), uuid.New()
	run(t, pool, enqueue, 1)
	take(t, pool, fence, 1, 60)
	var id int64
	if err := pool.QueryRow(t.Context(), "select id from idem.tasks").Scan(&id); err != nil {
		t.Fatal(err)
	}
	late := func() {
		run(t, pool, "update idem.tasks set lease_until = clock_timestamp() where lease_until is not null")
		run(t, pool, "update idem.takes set lease_until = clock_timestamp()")
	}
	renew := func() int64 {
		return run(t, pool, tasks.Renew, []string{"q"}, []int64{id}, []string{fence.String()}, []float64{60}, []bool{true})
	}
	late()
	if told := renew(); told != 0 || !live(t, pool) {
		t.Errorf("a lease that was late was not renewed (%d told)", told)
	}
	late()
	run(t, pool, tasks.Rescue, "q", 10, "died", uuid.Nil)
	if told := renew(); told != 1 || live(t, pool) {
		t.Errorf("a lease that was lost was renewed (%d told, want 1)", told)
	}
}

func live(t *testing.T, pool *pgxpool.Pool) (live bool) {
	t.Helper()
	err := pool.QueryRow(t.Context(), "select exists (select from idem.tasks where lease_until > clock_timestamp()) and exists (select from idem.takes where lease_until > clock_timestamp())").Scan(&live)
	if err != nil {
		t.Fatal(err)
	}
	return live
}

// The statements of a worker whose task was taken over change nothing, of the task or of
// its effects.
func TestE8_ofAnOldFenceATaskCanNotBeChanged(t *testing.T) {
	pool, old, successor := pgtest.New(t), uuid.New(), uuid.New()
	run(t, pool, enqueue, 1)
	take(t, pool, old, 1, 60)
	window, id, key := 3600.0, int64(0), ""
	if err := pool.QueryRow(t.Context(), "select id, id::text from idem.tasks").Scan(&id, &key); err != nil {
		t.Fatal(err)
	}
	run(t, pool, effects.Start, "shop", "e", nil, "dk", 10.0, &window, "q", key, old, "task")
	run(t, pool, "update idem.tasks set lease_until = clock_timestamp()")
	run(t, pool, "update idem.takes set lease_until = clock_timestamp()")
	run(t, pool, tasks.Rescue, "q", 10, "died", uuid.Nil)
	take(t, pool, successor, 1, 60)
	mark := "a mark"
	within := func(sql string, args ...any) func() {
		return func() {
			tx, err := pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback(t.Context()) }()
			run(t, tx, tasks.Begin, "0", "0", "0", mark)
			if _, err := tx.Exec(t.Context(), sql, args...); err == nil {
				t.Error("the end of a transaction of an old fence did not fail")
			}
		}
	}
	late := func(sql string, args ...any) func() { return func() { run(t, pool, sql, args...) } }
	many := []any{[]string{"q"}, []int64{id}, []string{old.String()}}
	for name, late := range map[string]func(){
		"done":       within(tasks.Done, "q", id, old, mark),
		"forget":     within(tasks.Forget, "q", id, old, mark),
		"done all":   late(tasks.DoneAll, many...),
		"forget all": late(tasks.ForgetAll, many...),
		"return":     late(tasks.Return, many...),
		"renew":      late(tasks.Renew, append(many[:3:3], []float64{600}, []bool{true})...),
		"retry":      late(tasks.Retry, "q", id, old, "e", 1.0),
		"fail":       late(tasks.Fail, "q", id, old, "e"),
		"snooze":     late(tasks.Snooze, "q", id, old, 1.0),
		"cancel":     late(tasks.Cancel, "q", id, old, nil),
		"end":        late(tasks.EndTakes, "q", []string{old.String(), successor.String()}),
		"record":     late(effects.Record, "shop", "e", old, []byte("1"), "q", key, 1, "task"),
		"retract":    late(effects.Retract, "shop", "e", old, "why", "q", key, 1, "task"),
		"doubt":      late(effects.Doubt, "shop", "e", old, "why", "q", key, 1, "task"),
		"restart":    late(effects.Restart, "shop", "e", old, "dk", 10.0, &window, "q", key, old, 1, "task"),
		"start":      late(effects.Start, "shop", "other", nil, "dk", 10.0, &window, "q", key, old, "task"),
	} {
		late()
		var same bool
		err := pool.QueryRow(t.Context(), `select c.status = 'running' and c.fence = $2 and c.attempts = 0 and c.lease_until > clock_timestamp()
				and c.lease_until < clock_timestamp() + interval '2 min' and k.fence = $2 and e.status = 'started' and e.calls = 1 and e.fence = $1
			from idem.tasks as c, idem.takes as k, idem.applied_effects as e`, old, successor).Scan(&same)
		if err != nil || !same {
			t.Fatalf("%s of an old fence has changed something (%v)", name, err)
		}
	}
	if n := run(t, pool, tasks.Fence, "q", id, old); n != 0 {
		t.Error("an old fence holds the task")
	}
	if n := run(t, pool, tasks.Fence, "q", id, successor); n != 1 {
		t.Error("the successor's fence does not hold the task")
	}
}
