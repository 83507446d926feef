package idem_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/metrics"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// grants are the statements that docs/operations.md shows for a role.
func grants(t *testing.T, role, name string) string {
	t.Helper()
	_, section, _ := strings.Cut(readPage(t, "docs/operations.md"), "-- "+role+"\n")
	block, _, found := strings.Cut(section, "\n\n")
	if !found || !strings.Contains(block, "grant") {
		t.Fatalf("docs/operations.md has no grants for a %s", role)
	}
	return strings.ReplaceAll(block, "idem_"+role, name)
}

// as is a pool on url of a role that owns nothing and has what docs/operations.md grants.
func as(t *testing.T, url, role string) *pgxpool.Pool {
	t.Helper()
	owner, name := pgtest.Pool(t, url), "idem_test_"+role
	exec(t, owner, "create role "+name+" login password 'app'")
	t.Cleanup(func() { exec(t, pgtest.Pool(t, url), "drop owned by "+name+"; drop role "+name) })
	exec(t, owner, grants(t, role, name))
	config := owner.Config()
	config.ConnConfig.User, config.ConnConfig.Password = name, "app"
	return pgtest.PoolWith(t, config)
}

func TestG5_theShippedGrantsSweepAndCheck(t *testing.T) {
	for _, role := range []string{"program", "operator"} {
		db := open(t, as(t, pgtest.NewURL(t), role), idem.Config{})
		if _, err := idem.Sweep(t.Context(), db); err != nil {
			t.Errorf("%s: Sweep: %v", role, err)
		}
		for v, err := range idem.Check(t.Context(), db) {
			t.Errorf("%s: Check: %v %v", role, v, err)
		}
	}
}

func TestG5_theShippedGrantsReadTheNumbersOfTheDatabase(t *testing.T) {
	for _, role := range []string{"program", "operator"} {
		registry := prometheus.NewRegistry()
		if _, err := metrics.New(metrics.Config{Registerer: registry, Pool: as(t, pgtest.NewURL(t), role)}); err != nil {
			t.Fatal(err)
		}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		up := false
		for _, f := range families {
			up = up || f.GetName() == "idem_database_up" && f.GetMetric()[0].GetGauge().GetValue() == 1
		}
		if !up {
			t.Errorf("%s cannot read the numbers", role)
		}
	}
}

// ends are how the attempts of a worker end: of each kind, the results in order.
type ends map[string][]idem.TaskResult

// Every way in which a task can go, of a program that has the grants and nothing else.
func TestG5_theShippedGrantsEnqueueWorkAndSweep(t *testing.T) {
	url := pgtest.NewURL(t)
	events := make(chan idem.Event, 1000)
	db := open(t, as(t, url, "program"), idem.Config{Observe: func(_ context.Context, e idem.Event) {
		if e.Kind == idem.EventTask || e.Kind == idem.EventWorker {
			events <- e
		}
	}})
	pool := db.Pool()
	w := queue.NewWorker(db, queue.Config{Concurrency: 4, Poll: 50 * time.Millisecond}) // no more than the pool has connections
	options := queue.Options{Backoff: time.Millisecond, MaxBackoff: 2 * time.Millisecond, MaxAttempts: 2}
	kind := func(name string) *queue.Kind[string] { return queue.Define[string](name, options) }
	within, leased, dead, gone := kind("within"), kind("leased"), kind("dead"), kind("gone")
	options.Retention = queue.Forget
	follow, forgotten := kind("follow"), kind("forgotten")

	within.Handle(w, func(ctx context.Context, tx pgx.Tx, p string) error {
		e := idem.Effect{Scope: "s", Key: "apply:" + p}
		_, _, err := idem.Apply(ctx, tx, e, func(context.Context, pgx.Tx) (int, error) { return 1, nil })
		if err != nil {
			return err
		}
		_, err = follow.Enqueue(ctx, tx, "follow:"+p, p)
		return err
	})
	follow.Handle(w, func(ctx context.Context, tx pgx.Tx, _ string) error {
		_, err := tx.Exec(ctx, "select 1")
		return err
	})
	tries := 0
	leased.HandleLeased(w, func(ctx context.Context, p string) error {
		if tries++; tries == 1 {
			return queue.Snooze(0)
		}
		e := idem.Effect{Scope: "s", Key: "call:" + p, Provider: idem.Keyed(time.Hour)}
		_, err := idem.Call(ctx, e, func(context.Context, string) (int, error) {
			if tries == 2 {
				return 0, idem.NotApplied(errors.New("refused"))
			}
			return 1, nil
		})
		return err
	})
	dead.HandleLeased(w, func(context.Context, string) error { return queue.Fail(errors.New("no such order")) })
	gone.HandleLeased(w, func(context.Context, string) error { return queue.Cancel })
	forgotten.HandleLeased(w, func(context.Context, string) error { return nil })

	for _, k := range []*queue.Kind[string]{within, leased, dead, gone, forgotten} {
		if _, err := k.Enqueue(t.Context(), pool, "one:"+k.Name(), "one"); err != nil {
			t.Fatal(err)
		}
		if again, err := k.Enqueue(t.Context(), pool, "one:"+k.Name(), "one"); err != nil || again.Outcome != queue.Duplicate {
			t.Errorf("enqueued again: %+v (%v)", again, err)
		}
	}
	diedWith(t, pool)
	if _, err := queue.Pause(t.Context(), db, "default"); err != nil {
		t.Error(err)
	}
	if _, err := queue.Resume(t.Context(), db, "default"); err != nil {
		t.Error(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	got := ends{}
	limit := time.After(20 * time.Second)
	for n := 0; n < 11; {
		select {
		case e := <-events:
			if e.Kind == idem.EventWorker {
				t.Errorf("the worker is in trouble: %v", e.Err)
				continue
			}
			got[e.TaskKind] = append(got[e.TaskKind], e.TaskResult)
			n++
		case <-limit:
			t.Fatalf("so far the attempts ended as %v", got)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	wantEnds(t, got)
	// What is finished expires, and its key is free again.
	exec(t, pool, "update idem.tasks set expires_at = clock_timestamp()")
	if again, err := within.Enqueue(t.Context(), pool, "one:within", "one"); err != nil || again.Outcome != queue.New {
		t.Errorf("enqueued after its time: %+v (%v)", again, err)
	}
	exec(t, pool, "insert into idem.takes values (gen_random_uuid(), gen_random_uuid(), 'q', now(), now() - interval '2 days', 0, '{1}')")
	sweep(t, db, idem.Swept{Tasks: 4, Takes: 1})
}

// diedWith is a task that was running when its worker died, and its take.
func diedWith(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	exec(t, pool, `with died as (
		insert into idem.tasks (kind, payload, status, takes, fence, lease_until)
		values ('within', '"died"', 'running', 1, gen_random_uuid(), clock_timestamp()) returning id, fence, queue)
	insert into idem.takes (fence, worker, queue, taken_at, lease_until, started, tasks)
	select fence, gen_random_uuid(), queue, now() - interval '1 min', now(), 1, array[id] from died`)
}

func wantEnds(t *testing.T, got ends) {
	t.Helper()
	for kind, want := range (ends{
		"within":    {idem.TaskDone, idem.TaskRetried, idem.TaskDone}, // the second was rescued first
		"follow":    {idem.TaskDone, idem.TaskDone},
		"leased":    {idem.TaskSnoozed, idem.TaskRetried, idem.TaskDone},
		"dead":      {idem.TaskFailed},
		"gone":      {idem.TaskCancelled},
		"forgotten": {idem.TaskDone},
	}) {
		if slices.Sort(got[kind]); !slices.Equal(got[kind], slices.Sorted(slices.Values(want))) {
			t.Errorf("%s: the attempts ended as %v, want %v", kind, got[kind], want)
		}
	}
}

// A program in any language that only enqueues needs no more, and reads no payload.
func TestG5_anEnqueuerCanEnqueueAndNothingElse(t *testing.T) {
	pool := as(t, pgtest.NewURL(t), "enqueuer")
	const enqueue = `insert into idem.tasks (queue, kind, task_key, payload) values ('default', 'receipt.send', $1, $2)
		on conflict (queue, task_key) do nothing returning id`
	var first, found int64
	if err := pool.QueryRow(t.Context(), enqueue, "receipt:1", []byte("{}")).Scan(&first); err != nil {
		t.Fatal(err)
	}
	if err := pool.QueryRow(t.Context(), enqueue, "receipt:1", []byte("{}")).Scan(&found); !errors.Is(err, pgx.ErrNoRows) {
		t.Errorf("a key that is remembered: %v, want no row", err)
	}
	const known = "select id from idem.tasks where queue = 'default' and task_key = $1"
	if err := pool.QueryRow(t.Context(), known, "receipt:1").Scan(&found); err != nil || found != first {
		t.Errorf("found task %d (%v), want %d", found, err, first)
	}
	for _, sql := range []string{"select payload from idem.tasks", "update idem.tasks set priority = 5", "delete from idem.tasks",
		"select from idem.takes", "select from idem.idempotency_keys", "insert into idem.takes default values"} {
		if _, err := pool.Exec(t.Context(), sql); err == nil {
			t.Errorf("%s: an enqueuer may", sql)
		}
	}
}
