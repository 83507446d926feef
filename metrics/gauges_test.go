package metrics_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/metrics"
)

const (
	waiting = `insert into idem.tasks (queue, kind, payload, run_at, priority, alone)
		select $1, 'k', '', now() + $3::interval, i % 3, $4 from generate_series(1, $2::integer) as i`
	dead = `insert into idem.tasks (queue, kind, payload, status, last_error, attempts, takes, fence, created_at, finished_at, expires_at)
		select $1, 'k', '', $3, 'e', 1, 1, gen_random_uuid(), now() - interval '40 days', now() - interval '35 days', now() + $4::interval
		from generate_series(1, $2::integer) as i`
	running = `with f as (select gen_random_uuid() as fence), kept as (
			insert into idem.tasks (queue, kind, payload, status, takes, fence, lease_until)
			select $1, 'k', '', 'running', 1, f.fence, now() + $3::interval from f, generate_series(1, $2::integer) returning id)
		insert into idem.takes (fence, worker, queue, taken_at, lease_until, started, tasks)
		select f.fence, gen_random_uuid(), $1, now() - interval '1 day', now() + $3::interval, 0, array(select id from kept) || 0::bigint from f`
	answered = `insert into idem.idempotency_keys (scope, key, fence, state, fingerprint_version, fingerprint,
		response_status, response_headers, response_body, created_at, expires_at, tombstone_until)
		select 's', $1 || i, gen_random_uuid(), 'answered', 1, sha256('x'), 201, '{}', repeat('body', 200)::bytea,
		now() - interval '100 days', now() + $3::interval, now() + $4::interval from generate_series(1, $2::integer) as i`
	effect = `insert into idem.applied_effects (scope, effect_key, status, fence, downstream_key, calls, intended_at, call_until, owner_door, owner_scope, owner_key)
		values ('s', $1, $2, gen_random_uuid(), 'd', 1, now(), now() + $3::interval, $4, $5, $6)`
)

func TestGauges_tellWhatIsInTheDatabase(t *testing.T) {
	pool := pgtest.Broken(t) // rows that no worker has made
	m := measure(t, metrics.Config{Pool: pool})
	m.Observe(t.Context(), idem.Event{Kind: idem.EventHandler, Queue: "idle", TaskKind: "k"})
	exec(t, pool, waiting, "mail", 7, "-1 hour", false)
	exec(t, pool, waiting, "mail", 3, "1 hour", false)
	exec(t, pool, waiting, "mail", 2, "-2 hours", true)
	exec(t, pool, running, "mail", 4, "1 hour")
	exec(t, pool, dead, "mail", 5, "failed", "1 hour")
	exec(t, pool, dead, "mail", 6, "done", "-1 hour")
	exec(t, pool, dead, "old", 1, "failed", "1 hour")
	exec(t, pool, waiting, "later", 1, "1 hour", false)
	exec(t, pool, running, "silent", 1, "-3 hours")
	exec(t, pool, effect, "e1", "unknown", "1 hour", nil, nil, nil)
	exec(t, pool, effect, "e2", "started", "-1 second", nil, nil, nil)
	exec(t, pool, effect, "e3", "started", "1 hour", nil, nil, nil)
	exec(t, pool, effect, "e4", "absent", "-1 hour", nil, nil, nil)

	got := m.scrape(t)
	want := map[string]float64{"idem_database_up": 1, "idem_database_errors_total": 0, "idem_effects_unsettled": 2}
	for queue, n := range map[string][3]float64{"mail": {12, 4, 5}, "old": {0, 0, 1}, "later": {1, 0, 0}, "silent": {0, 1, 0}, "idle": {}} {
		for i, status := range []string{"pending", "running", "failed"} {
			want[`idem_tasks{queue="`+queue+`",status="`+status+`"}`] = n[i]
		}
	}
	for name, v := range want {
		if have, there := got[name]; !there || have != v {
			t.Errorf("%s is %v (there: %v), want %v", name, have, there, v)
		}
	}
	wantAbout(t, got, map[string]float64{
		`idem_oldest_due_task_seconds{queue="mail"}`:       7200,
		`idem_oldest_due_task_seconds{queue="silent"}`:     3 * 3600,
		`idem_oldest_due_task_seconds{queue="later"}`:      0,
		`idem_oldest_due_task_seconds{queue="old"}`:        0,
		`idem_oldest_due_task_seconds{queue="idle"}`:       0,
		`idem_sweep_lag_seconds{table="tasks"}`:            3600,
		`idem_sweep_lag_seconds{table="takes"}`:            0,
		`idem_sweep_lag_seconds{table="idempotency_keys"}`: 0,
		"idem_oldest_transaction_seconds":                  0,
	})
	for name := range got {
		if strings.HasPrefix(name, "idem_tasks{") && want[name] == 0 && !slices.Contains(slices.Collect(maps.Keys(want)), name) {
			t.Errorf("%s was not wanted", name)
		}
	}
}

// wantAbout fails unless the seconds are those, and what a slow test adds.
func wantAbout(t *testing.T, got, want map[string]float64) {
	t.Helper()
	for name, v := range want {
		if have, there := got[name]; !there || have < v || have > v+300 {
			t.Errorf("%s is %v (there: %v), want about %v", name, have, there, v)
		}
	}
}

func TestGauges_sweepLagIsThatOfWhatASweepWouldTake(t *testing.T) {
	pool := pgtest.Broken(t)
	exec(t, pool, answered, "late", 3, "-1 hour", nil)
	exec(t, pool, answered, "strip", 1, "-2 hours", "1 hour")
	exec(t, pool, answered, "live", 20, "1 hour", nil)
	exec(t, pool, `insert into idem.idempotency_keys (scope, key, fence, state, fingerprint_version, fingerprint, created_at, expires_at, lease_until, bound)
		values ('s', 'held', gen_random_uuid(), 'claimed', 1, sha256('x'), now() - interval '9 days', now() - interval '8 days', now() - interval '9 days', true)`)
	exec(t, pool, effect, "e", "unknown", "-1 day", "request", "s", "held")
	exec(t, pool, "insert into idem.takes values (gen_random_uuid(), gen_random_uuid(), 'q', now() - interval '9 days', now() - interval '3 days', 0, '{1}')")
	exec(t, pool, running, "silent", 1, "-5 days")
	exec(t, pool, dead, "q", 2, "failed", "-10 minutes")

	wantAbout(t, measure(t, metrics.Config{Pool: pool}).scrape(t), map[string]float64{
		`idem_sweep_lag_seconds{table="idempotency_keys"}`: 7200,
		`idem_sweep_lag_seconds{table="tasks"}`:            600,
		`idem_sweep_lag_seconds{table="takes"}`:            2 * 86400,
	})
	db := open(t, pool, nil)
	if _, err := idem.Sweep(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	wantAbout(t, measure(t, metrics.Config{Pool: pool}).scrape(t), map[string]float64{
		`idem_sweep_lag_seconds{table="idempotency_keys"}`: 0,
		`idem_sweep_lag_seconds{table="tasks"}`:            0,
		`idem_sweep_lag_seconds{table="takes"}`:            0,
	})
}

// A large table is looked at in windows: what is over anywhere for long shows.
func TestGauges_sweepLagOfALargeTable(t *testing.T) {
	pool := pgtest.New(t)
	exec(t, pool, answered, "first", 20_000, "-1 hour", nil)
	exec(t, pool, answered, "then", 20_000, "1 hour", nil)
	var pages int
	if err := pool.QueryRow(t.Context(), "select pg_relation_size('idem.idempotency_keys') / 8192").Scan(&pages); err != nil || pages < 2000 {
		t.Fatalf("the table has %d pages (%v), want more than are looked at", pages, err)
	}
	wantAbout(t, measure(t, metrics.Config{Pool: pool}).scrape(t), map[string]float64{
		`idem_sweep_lag_seconds{table="idempotency_keys"}`: 3600,
	})
}

// What is counted, and for how many queues, has bounds.
func TestGauges_areBounded(t *testing.T) {
	pool := pgtest.New(t)
	m := measure(t, metrics.Config{Pool: pool})
	m.Observe(t.Context(), idem.Event{Kind: idem.EventHandler, Queue: "zz-known", TaskKind: "k"})
	exec(t, pool, waiting, "aa-full", 10_050, "-1 hour", false)
	exec(t, pool, dead, "zy-dead", 10_050, "failed", "1 hour")
	exec(t, pool, "insert into idem.tasks (queue, kind, payload) select 'q' || i, 'k', '' from generate_series(1, 100) as i")
	got := m.scrape(t)
	queues := 0
	for name := range got {
		if strings.HasPrefix(name, "idem_oldest_due_task_seconds{") {
			queues++
		}
	}
	if queues != 50 {
		t.Errorf("%d queues are told of, want 50", queues)
	}
	for name, want := range map[string]float64{
		`idem_tasks{queue="aa-full",status="pending"}`:  10_000,
		`idem_tasks{queue="zy-dead",status="failed"}`:   10_000,
		`idem_tasks{queue="zz-known",status="pending"}`: 0,
	} {
		if n, there := got[name]; !there || n != want {
			t.Errorf("%s is %v (there: %v), want %v", name, n, there, want)
		}
	}
}
