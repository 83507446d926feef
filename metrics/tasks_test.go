package metrics_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/metrics"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
)

// Every result of an attempt and of an effect is counted as often as it was.
func TestTasks_everyResultIsCountedAsOftenAsItWas(t *testing.T) {
	pool := pgtest.Broken(t) // a task that nobody has, in the end
	m := measure(t, metrics.Config{Pool: pool})
	ended := make(chan idem.Event, 100)
	db := open(t, pool, func(ctx context.Context, e idem.Event) {
		m.Observe(ctx, e)
		if e.Kind == idem.EventTask {
			ended <- e
		}
	})
	w := queue.NewWorker(db, queue.Config{Concurrency: 2, Poll: 20 * time.Millisecond})
	options := queue.Options{Queue: "q", Backoff: time.Millisecond, MaxBackoff: time.Millisecond, MaxAttempts: 3}
	kind := func(name string, handle func(ctx context.Context, try int) error) *queue.Kind[string] {
		k, try := queue.Define[string](name, options), 0
		k.HandleLeased(w, func(ctx context.Context, _ string) error { try++; return handle(ctx, try) })
		return k
	}
	done := queue.Define[string]("done", options)
	apply := func(ctx context.Context, tx pgx.Tx, key string) error {
		_, _, err := idem.Apply(ctx, tx, idem.Effect{Scope: "s", Key: key}, func(context.Context, pgx.Tx) (int, error) { return 1, nil })
		return err
	}
	done.Handle(w, func(ctx context.Context, tx pgx.Tx, _ string) error { return apply(ctx, tx, "once") })
	call := func(ctx context.Context, key string, fail error) error {
		_, err := idem.Call(ctx, idem.Effect{Scope: "s", Key: key}, func(context.Context, string) (int, error) { return 1, fail })
		return err
	}
	kinds := []*queue.Kind[string]{
		done, done, // applied, then skipped
		kind("retried", func(ctx context.Context, try int) error {
			if try < 3 {
				return idem.NotApplied(errors.New("try again"))
			}
			return call(ctx, "called", nil) // applied
		}),
		kind("failed", func(context.Context, int) error { return errors.New("always") }),
		kind("snoozed", func(ctx context.Context, try int) error {
			if try == 1 {
				_ = call(ctx, "refused", idem.NotApplied(errors.New("no"))) // absent
				return queue.Snooze(0)
			}
			return nil
		}),
		kind("cancelled", func(context.Context, int) error { return queue.Cancel }),
		kind("unknown", func(ctx context.Context, _ int) error {
			return queue.Fail(call(ctx, "doubtful", errors.New("hung up")))
		}),
		kind("lost", func(ctx context.Context, _ int) error {
			if _, err := pool.Exec(ctx, "update idem.tasks set fence = gen_random_uuid() where kind = 'lost'"); err != nil {
				return err
			}
			return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return apply(ctx, tx, "fenced") })
		}),
	}
	ctx, stop := context.WithCancel(t.Context())
	running := make(chan error, 1)
	enqueue := func(k *queue.Kind[string]) {
		if _, err := k.Enqueue(t.Context(), pool, queue.Unkeyed, "payload"); err != nil {
			t.Fatal(err)
		}
	}
	enqueue(done)
	go func() { running <- w.Run(ctx) }()
	<-ended // so that the other is skipped
	for _, k := range kinds[1:] {
		enqueue(k)
	}
	limit := time.After(30 * time.Second)
	attempts := map[[2]string]float64{{"done", "done"}: 1}
	for n := 1; n < 2+3+3+2+1+1+1; n++ {
		select {
		case e := <-ended:
			attempts[[2]string{e.TaskKind, string(e.TaskResult)}]++
		case <-limit:
			t.Fatalf("so far the attempts ended as %v", attempts)
		}
	}
	stop()
	if err := <-running; err != nil {
		t.Error(err)
	}

	want := map[string]float64{}
	for _, kind := range []string{"done", "retried", "failed", "snoozed", "cancelled", "unknown", "lost"} {
		for _, result := range idem.TaskResults() {
			want[`idem_tasks_total{kind="`+kind+`",queue="q",result="`+string(result)+`"}`] = 0
		}
	}
	for name, n := range map[string]float64{
		`kind="done",queue="q",result="done"`: 2, `kind="retried",queue="q",result="retried"`: 2, `kind="retried",queue="q",result="done"`: 1,
		`kind="failed",queue="q",result="retried"`: 2, `kind="failed",queue="q",result="failed"`: 1, `kind="snoozed",queue="q",result="snoozed"`: 1,
		`kind="snoozed",queue="q",result="done"`: 1, `kind="cancelled",queue="q",result="cancelled"`: 1, `kind="unknown",queue="q",result="failed"`: 1,
		`kind="lost",queue="q",result="lease_lost"`: 1,
	} {
		want["idem_tasks_total{"+name+"}"] = n
	}
	for result, n := range map[idem.EffectResult]float64{idem.EffectApplied: 2, idem.EffectSkipped: 1, idem.EffectAbsent: 1, idem.EffectUnknown: 1, idem.EffectFenced: 1} {
		want[`idem_effects_total{result="`+string(result)+`"}`] = n
	}
	want[`idem_task_attempts_count{kind="retried",queue="q"}`] = 1
	want[`idem_task_attempts_sum{kind="retried",queue="q"}`] = 3
	want[`idem_task_attempts_sum{kind="failed",queue="q"}`] = 3
	want[`idem_task_attempts_sum{kind="snoozed",queue="q"}`] = 1
	want[`idem_task_attempts_count{kind="lost",queue="q"}`] = 0
	want[`idem_task_seconds_count{kind="retried",queue="q"}`] = 3
	want[`idem_task_delay_seconds_count{kind="retried",queue="q"}`] = 3
	want[`idem_tasks{queue="q",status="failed"}`] = 2
	want[`idem_tasks{queue="q",status="pending"}`] = 0
	want[`idem_effects_unsettled`] = 1
	m.want(t, want)
}

// A sweep counts what it removed, by table, and tells how late it was.
func TestSweep_isCountedByTable(t *testing.T) {
	pool := pgtest.New(t)
	m := measure(t, metrics.Config{})
	var told []idem.Event
	db := open(t, pool, func(ctx context.Context, e idem.Event) { told = append(told, e); m.Observe(ctx, e) })
	exec(t, pool, answered, "late", 1500, "-1 hour", nil)
	exec(t, pool, answered, "strip", 3, "-1 hour", "1 hour")
	exec(t, pool, dead, "q", 2, "done", "-2 hours")
	m.want(t, map[string]float64{`idem_swept_total{table="takes"}`: 0, `idem_swept_total{table="tasks"}`: 0})
	if _, err := idem.Sweep(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	m.want(t, map[string]float64{
		`idem_swept_total{table="idempotency_keys"}`: 1500,
		`idem_swept_total{table="tasks"}`:            2,
		`idem_swept_total{table="takes"}`:            0,
	})
	if len(told) != 2 {
		t.Fatalf("told %+v, want one event for each table", told)
	}
	for i, want := range []struct {
		table          string
		rows, stripped int64
		lag            time.Duration
	}{{"idempotency_keys", 1500, 3, time.Hour}, {"tasks", 2, 0, 2 * time.Hour}} {
		e := told[i]
		if e.Kind != idem.EventSweep || e.Table != want.table || e.Rows != want.rows || e.Stripped != want.stripped || e.Lag < want.lag || e.Lag > want.lag+5*time.Minute {
			t.Errorf("told %+v, want %+v", e, want)
		}
	}
}
