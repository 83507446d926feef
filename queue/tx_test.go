package queue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/faultproxy"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
)

// Whatever happens around the COMMIT of a handler's transaction: its writes are there
// once, the task is done, and nobody tells of two ends.
func TestT26_theTruthAboutALostCommitIsFound(t *testing.T) {
	t.Parallel()
	commits, committed := faultproxy.Executes("commit"), faultproxy.Completes("COMMIT")
	for name, c := range map[string]struct {
		when     func(faultproxy.Message) bool
		do       faultproxy.Action
		attempts int // 0: one or two
	}{
		"cut before it":            {commits, faultproxy.Cut(), 2},
		"reset before it":          {commits, faultproxy.Reset(), 2},
		"cut after it":             {commits, faultproxy.After(faultproxy.Cut()), 0}, // the server may be late
		"cut when it is done":      {committed, faultproxy.Cut(), 1},
		"reset when it is done":    {committed, faultproxy.Reset(), 1},
		"client cut when it is":    {committed, faultproxy.CutClient(), 1},
		"delayed":                  {commits, faultproxy.Delay(300 * time.Millisecond), 1},
		"its completion is late":   {faultproxy.Executes("with finished as"), faultproxy.Late(), 2},
		"its completion is cut":    {faultproxy.Executes("with finished as"), faultproxy.Cut(), 2},
		"the handler's row is cut": {faultproxy.Executes("insert into runs"), faultproxy.Cut(), 1}, // it is sent again
	} {
		for _, forget := range []bool{false, true} {
			if forget {
				name += ", forgotten"
			}
			t.Run(name, func(t *testing.T) {
				f := newFloor(t)
				db, proxy := f.through(t)
				options := queue.Options{Backoff: time.Millisecond}
				if forget {
					options.Retention = queue.Forget
				}
				kind := queue.Define[job]("job", options)
				proxy.Add(faultproxy.Rule{Name: "cancel", When: faultproxy.Is(faultproxy.FromClient, "CancelRequest"), Times: -1, Do: faultproxy.Cut()})
				armed := proxy.Add(faultproxy.Rule{Name: name, When: c.when, Do: c.do})
				f.enqueue(kind, job{N: 1})
				w := queue.NewWorker(db, queue.Config{Poll: 50 * time.Millisecond})
				starts := make(chan int, 10)
				kind.Handle(w, func(ctx context.Context, tx pgx.Tx, j job) error {
					starts <- j.N
					return runs(ctx, tx, j)
				})
				stop := f.run(w)
				<-armed.Reached()
				f.until("it is told to be done", 20*time.Second, func() bool { return f.told(idem.TaskDone) == 1 })
				armed.Release() // what was late comes after its successor
				if err := stop(); err != nil {
					t.Error(err)
				}
				f.wantCount(1, "select count(*) from runs")
				if forget { // at once, or by the sweeper if it was taken twice
					f.wantCount(0, "select count(*) from idem.tasks where not (takes > 1 and status = 'done' and expires_at <= clock_timestamp())")
				} else {
					f.wantCount(1, "select count(*) from idem.tasks where status = 'done' and attempts = $1", len(starts))
				}
				if c.attempts != 0 && len(starts) != c.attempts {
					t.Errorf("the handler was started %d times, want %d", len(starts), c.attempts)
				}
				if t.Failed() {
					t.Log(valueOf[string](f, "select string_agg(t::text, '; ') from idem.tasks as t"), f.events)
				}
				if done := f.told(idem.TaskDone); done != 1 {
					t.Errorf("it is told to be done %d times", done)
				}
			})
		}
	}
}

func TestT27_aHandlerThatLocksItsOwnTaskKeepsItsLease(t *testing.T) {
	t.Parallel()
	f := newFloor(t)
	kind := queue.Define[job]("job", queue.Options{Lease: shortLease, Timeout: time.Minute})
	f.enqueue(kind, job{N: 1, Do: "lock"}, job{N: 2})
	w := f.worker()
	g := newGate()
	kind.Handle(w, func(ctx context.Context, tx pgx.Tx, j job) error {
		if j.Do == "lock" {
			_, err := tx.Exec(ctx, "select from idem.tasks where convert_from(payload, 'UTF8')::json ->> 'do' = 'lock' for update")
			if err != nil {
				return err
			}
		}
		return errors.Join(g.wait(ctx, j.N), runs(ctx, tx, j))
	})
	f.run(w)
	other := f.worker() // who would take over
	kind.Handle(other, runs)
	g.await(t, 2)
	f.run(other)
	// That of the other is renewed, that of the one who locks it cannot be.
	f.untilCount(1, 10*time.Second, `select count(*) from idem.tasks as free where lease_until > clock_timestamp()
		and exists (select from idem.tasks as locked where locked.lease_until < clock_timestamp() - interval '2 seconds')`)
	close(g.open)
	f.untilCount(2, 10*time.Second, "select count(*) from idem.tasks where status = 'done' and attempts = 1")
	f.wantCount(2, "select count(*) from runs")
	if lost := f.told(idem.TaskLeaseLost); lost != 0 {
		t.Errorf("%d leases were lost, want none", lost)
	}
}

// A transaction is the worker's to end: what a handler does to it is found out.
func TestTx_aHandlerCannotEndIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do     func(ctx context.Context, tx pgx.Tx) error
		rows   int
		status queue.Status
		says   string
	}{
		"Commit":       {func(ctx context.Context, tx pgx.Tx) error { _ = tx.Commit(ctx); return nil }, 0, queue.StatusFailed, "ommit"},
		"Rollback":     {func(ctx context.Context, tx pgx.Tx) error { return tx.Rollback(ctx) }, 0, queue.StatusFailed, "rolled"},
		"raw rollback": {raw("rollback"), 0, queue.StatusFailed, "ended its transaction itself"},
		"raw commit":   {raw("commit"), 1, queue.StatusFailed, "ended its transaction itself"},
		"and begins":   {raw("commit", "begin"), 1, queue.StatusFailed, "ended its transaction itself"},
		"in one":       {raw("commit; begin"), 1, queue.StatusFailed, "ended its transaction itself"},
		"and chain":    {raw("commit and chain"), 1, queue.StatusFailed, "ended its transaction itself"},
		"aborted":      {raw("select 1/0"), 0, queue.StatusFailed, "aborted transaction"},
		"a savepoint":  {func(ctx context.Context, tx pgx.Tx) error { return inSavepoint(ctx, tx) }, 1, queue.StatusDone, ""},
		"it kills":     {raw("select pg_terminate_backend(pg_backend_pid())"), 0, queue.StatusFailed, "onnection"},
		"rows are open": {func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Query(ctx, "select generate_series(1, 10000)")
			return err
		}, 1, queue.StatusDone, ""},
		"batch is open": {func(ctx context.Context, tx pgx.Tx) error {
			b := &pgx.Batch{}
			b.Queue("select 1")
			tx.SendBatch(ctx, b)
			return nil
		}, 1, queue.StatusDone, ""},
		"bad statement":  {raw("select from nowhere"), 0, queue.StatusFailed, "aborted transaction"},
		"deferred check": {raw("create table twice (n integer unique deferrable initially deferred)", "insert into twice values (1), (1)"), 0, queue.StatusFailed, "twice_n_key"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFloor(t)
			options := eager
			options.MaxAttempts = 1
			kind := queue.Define[job]("job", options)
			f.enqueue(kind, job{N: 1})
			w := f.worker()
			kind.Handle(w, func(ctx context.Context, tx pgx.Tx, j job) error {
				return errors.Join(runs(ctx, tx, j), c.do(ctx, tx))
			})
			f.run(w)
			f.untilCount(1, 10*time.Second, "select count(*) from idem.tasks where finished_at is not null")
			f.wantCount(1, "select count(*) from idem.tasks where status = $1 and coalesce(last_error, '') like '%' || $2 || '%'", c.status, c.says)
			if t.Failed() {
				t.Log(valueOf[string](f, "select status || ': ' || coalesce(last_error, '') from idem.tasks"))
			}
			f.wantCount(c.rows, "select count(*) from runs")
		})
	}
}

// raw runs statements, whose errors the handler swallows.
func raw(all ...string) func(context.Context, pgx.Tx) error {
	return func(ctx context.Context, tx pgx.Tx) error {
		for _, sql := range all {
			_, _ = tx.Exec(ctx, sql)
		}
		return nil
	}
}

// inSavepoint fails within a savepoint, and goes on.
func inSavepoint(ctx context.Context, tx pgx.Tx) error {
	inner, err := tx.Begin(ctx)
	if err != nil {
		return err
	}
	if _, err := inner.Exec(ctx, "insert into runs (n) select 1/0"); err == nil {
		return errors.New("a division by zero went well")
	}
	return inner.Rollback(ctx)
}

// A first statement that failed is not forgotten because the handler does.
func TestTx_aTransactionThatCouldNotBeBegunIsNoSuccess(t *testing.T) {
	f := newFloor(t)
	db, proxy := f.through(t)
	options := eager
	options.MaxAttempts = 2
	kind := queue.Define[job]("job", options)
	f.enqueue(kind, job{N: 1})
	w := queue.NewWorker(db, queue.Config{Poll: 50 * time.Millisecond, PollOnly: true})
	proxy.Add(faultproxy.Rule{Name: "three times", When: faultproxy.Executes("begin"), Times: 3, Do: faultproxy.Cut()})
	kind.Handle(w, func(ctx context.Context, tx pgx.Tx, j job) error {
		_ = runs(ctx, tx, j)
		return nil
	})
	f.run(w)
	f.untilCount(1, 10*time.Second, "select count(*) from idem.tasks where status = 'done' and attempts = 2")
	f.wantCount(1, "select count(*) from runs")
}

func TestTx_aDeadlockRunsTheHandlerAgainAtNoCost(t *testing.T) {
	t.Parallel()
	f := newFloor(t)
	f.exec("insert into runs (n) values (1), (2)")
	kind := queue.Define[job]("job", queue.Options{})
	f.enqueue(kind, job{N: 1}, job{N: 2})
	w := f.worker()
	both := make(chan struct{}, 100)
	kind.Handle(w, func(ctx context.Context, tx pgx.Tx, j job) error {
		if _, err := tx.Exec(ctx, "update runs set by = by || 'x' where n = $1", j.N); err != nil {
			return err
		}
		both <- struct{}{}
		for len(both) < 2 {
			time.Sleep(time.Millisecond)
		}
		_, err := tx.Exec(ctx, "update runs set by = by || 'x' where n = $1", 3-j.N)
		return err
	})
	f.run(w)
	f.untilCount(2, 20*time.Second, "select count(*) from idem.tasks where status = 'done' and attempts = 1")
	f.wantCount(2, "select count(*) from runs where by = 'xx'")
}
