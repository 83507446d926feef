package queue_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/faultproxy"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// That there is no task any more is no proof that it was this worker who has done it.
func TestT12_aTaskThatIsGoneIsNotDoneByWhoHasLostIt(t *testing.T) {
	t.Parallel()
	for name, leased := range map[string]bool{"in the transaction": false, "on a lease": true} {
		for kept, retention := range map[string]time.Duration{"kept": 0, "forgotten": queue.Forget} {
			t.Run(name+", "+kept, func(t *testing.T) {
				f := newFloor(t)
				kind := queue.Define[job]("job", queue.Options{Retention: retention})
				f.enqueue(kind, job{N: 1})
				w := f.worker()
				g, committed := newGate(), make(chan struct{}, 1)
				wait := func(ctx context.Context, j job) error {
					idem.AfterCommit(ctx, func(context.Context) { committed <- struct{}{} })
					return g.wait(ctx, j.N)
				}
				if leased {
					kind.HandleLeased(w, wait)
				} else {
					kind.Handle(w, func(ctx context.Context, tx pgx.Tx, j job) error {
						return errors.Join(runs(ctx, tx, j), wait(ctx, j))
					})
				}
				f.run(w)
				g.await(t, 1)
				f.exec("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and state = 'idle in transaction'")
				f.exec("delete from idem.tasks") // a successor has done it, and the sweeper was there
				close(g.open)
				f.until("it is told of", 10*time.Second, func() bool { return f.told(idem.TaskLeaseLost)+f.told(idem.TaskDone) == 1 })
				if f.told(idem.TaskDone) != 0 || len(committed) != 0 {
					t.Errorf("it is told to be done %d times, and %d functions ran after its commit; want none", f.told(idem.TaskDone), len(committed))
				}
				f.wantCount(0, "select count(*) from runs")
			})
		}
	}
}

// Not even if it does not know whether its own COMMIT was, where that would have left a row.
func TestT12_aRowThatIsGoneIsNotDoneWhereOneIsKept(t *testing.T) {
	t.Parallel()
	f := newFloor(t)
	db, proxy := f.through(t)
	kind := queue.Define[job]("job", queue.Options{})
	f.enqueue(kind, job{N: 1})
	w := queue.NewWorker(db, queue.Config{Poll: 50 * time.Millisecond})
	g := newGate()
	kind.Handle(w, func(ctx context.Context, tx pgx.Tx, j job) error {
		return errors.Join(runs(ctx, tx, j), g.wait(ctx, j.N))
	})
	f.run(w)
	g.await(t, 1)
	end := proxy.Add(faultproxy.Rule{Name: "its end", When: faultproxy.Executes("with finished as"), Do: faultproxy.Hold()})
	close(g.open)
	<-end.Reached()
	f.exec("delete from idem.tasks")
	end.Cut()
	f.until("it is told of", 10*time.Second, func() bool { return f.told(idem.TaskLeaseLost)+f.told(idem.TaskDone) == 1 })
	if f.told(idem.TaskDone) != 0 {
		t.Error("it is told to be done")
	}
	f.wantCount(0, "select count(*) from runs")
}

// A run whose COMMIT may still come is not followed by another at once, which would meet it.
func TestT26_aHandlerWhoseCommitMayComeIsNotRunAgainAtOnce(t *testing.T) {
	t.Parallel()
	f := newFloor(t)
	db, proxy := f.through(t)
	kind := queue.Define[job]("job", queue.Options{Backoff: time.Millisecond})
	f.enqueue(kind, job{N: 1})
	proxy.Add(faultproxy.Rule{Name: "cancel", When: faultproxy.Is(faultproxy.FromClient, "CancelRequest"), Times: -1, Do: faultproxy.Cut()})
	late := proxy.Add(faultproxy.Rule{Name: "its end", When: faultproxy.Executes("with finished as"), Do: faultproxy.Late()})
	w := queue.NewWorker(db, queue.Config{Poll: 50 * time.Millisecond})
	kind.Handle(w, func(ctx context.Context, tx pgx.Tx, j job) error {
		inner, err := tx.Begin(ctx)
		if err != nil {
			return err
		}
		if _, err := inner.Exec(ctx, "do $$ begin raise exception using errcode = '40001'; end $$"); err == nil {
			return errors.New("it went well")
		}
		return errors.Join(inner.Rollback(ctx), runs(ctx, tx, j))
	})
	f.run(w)
	<-late.Reached()
	f.until("it is told to be done", 20*time.Second, func() bool { return f.told(idem.TaskDone) == 1 })
	late.Release()
	f.wantCount(1, "select count(*) from runs")
	f.wantCount(1, "select count(*) from idem.tasks where attempts = 2")
	if n := f.told(idem.TaskRetried); n != 1 {
		t.Errorf("it is told to be retried %d times, want once", n)
	}
}

// An end that was recorded is told as such, though the reply was lost.
func TestT26_anEndWhoseReplyWasLostIsToldAsItIs(t *testing.T) {
	t.Parallel()
	type end struct {
		options queue.Options
		err     error
		first   string // words of its statement
		result  idem.TaskResult
		row     string
	}
	later := queue.Options{Backoff: time.Hour, MaxBackoff: time.Hour}
	last := later
	last.MaxAttempts = 1
	for name, c := range map[string]end{
		"retried":   {later, errors.New("no luck"), "jsonb_array_length", idem.TaskRetried, "status = 'pending' and attempts = 1"},
		"the last":  {last, errors.New("no luck"), "jsonb_array_length", idem.TaskFailed, "status = 'failed' and attempts = 1"},
		"failed":    {later, queue.Fail(errors.New("no use")), "jsonb_array_length", idem.TaskFailed, "status = 'failed' and attempts = 1"},
		"snoozed":   {later, queue.Snooze(time.Hour), "fence = case when c.cancel_at is not null then c.fence end", idem.TaskSnoozed, "status = 'pending' and attempts = 0"},
		"cancelled": {later, queue.Cancel, "set    status = 'cancelled'", idem.TaskCancelled, "status = 'cancelled'"},
		"forgotten": {queue.Options{Retention: queue.Forget}, nil, "delete from idem.tasks", idem.TaskDone, "false"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFloor(t)
			db, proxy := f.through(t)
			kind := queue.Define[job]("job", c.options)
			f.enqueue(kind, job{N: 1})
			armed := proxy.Add(faultproxy.Rule{Name: "the reply", Do: faultproxy.CutClient(), When: func(m faultproxy.Message) bool {
				return m.Direction == faultproxy.FromServer && m.Type == "CommandComplete" && strings.Contains(m.SQL, c.first)
			}})
			w := queue.NewWorker(db, queue.Config{Poll: 50 * time.Millisecond})
			kind.HandleLeased(w, func(context.Context, job) error { return c.err })
			f.run(w)
			select {
			case <-armed.Reached():
			case <-time.After(10 * time.Second):
				t.Fatal("its end does not come by")
			}
			f.until("it is told of", 20*time.Second, func() bool { return f.told(c.result)+f.told(idem.TaskLeaseLost) > 0 })
			if f.told(c.result) != 1 {
				t.Errorf("it is told to be lost, want %s", c.result)
			}
			n := 1
			if c.row == "false" {
				n = 0
			}
			f.wantCount(n, "select count(*) from idem.tasks where "+c.row)
			f.wantCount(n, "select count(*) from idem.tasks")
		})
	}
}

// Its successor has taken it meanwhile, or it was found to be a dead worker's, which no
// record of its own was: the one is its own end, the other is not.
func TestT26_whatOthersHaveDoneSinceIsToldApart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		since  string
		result idem.TaskResult
	}{
		"taken again": {"update idem.tasks set status = 'running', takes = 2, fence = gen_random_uuid(), lease_until = clock_timestamp() + interval '1 hour'", idem.TaskRetried},
		"rescued":     {"update idem.tasks set alone = true", idem.TaskLeaseLost},
		"by another":  {"update idem.tasks set takes = 2", idem.TaskLeaseLost},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFloor(t)
			db, proxy := f.through(t)
			kind := queue.Define[job]("job", queue.Options{Backoff: time.Hour, MaxBackoff: time.Hour})
			f.enqueue(kind, job{N: 1})
			again := proxy.Add(faultproxy.Rule{Name: "the second try", Do: faultproxy.Hold(), When: faultproxy.Nth(2, func(m faultproxy.Message) bool {
				return m.Direction == faultproxy.FromClient && m.Type == "Execute" && strings.Contains(m.SQL, "jsonb_array_length(c.errors)") && strings.Contains(m.SQL, "last_error = $4")
			})})
			proxy.Add(faultproxy.Rule{Name: "the reply", Do: faultproxy.CutClient(), When: func(m faultproxy.Message) bool {
				return m.Direction == faultproxy.FromServer && m.Type == "CommandComplete" && strings.Contains(m.SQL, "last_error = $4")
			}})
			w := queue.NewWorker(db, queue.Config{Poll: 50 * time.Millisecond})
			kind.HandleLeased(w, func(context.Context, job) error { return errors.New("no luck") })
			f.run(w)
			select {
			case <-again.Reached():
			case <-time.After(10 * time.Second):
				t.Fatal("it is not tried again")
			}
			f.exec(c.since)
			again.Release()
			f.until("it is told of", 20*time.Second, func() bool { return f.told(idem.TaskRetried)+f.told(idem.TaskLeaseLost) > 0 })
			if f.told(c.result) != 1 {
				t.Errorf("it is told otherwise, want %s", c.result)
			}
			f.exec("delete from idem.tasks")
		})
	}
}

// A pool that is too small delays tasks, and fails none but those whose handlers stay.
func TestT15_waitingForAConnectionCostsNoAttempt(t *testing.T) {
	for name, stays := range map[string]bool{"it returns": false, "it stays": true} {
		t.Run(name, func(t *testing.T) {
			f := newFloor(t)
			config := f.pool.Config()
			config.MaxConns = 2
			small := f.open(pgtest.PoolWith(t, config))
			kind := queue.Define[job]("job", queue.Options{MaxAttempts: 1, Timeout: 300 * time.Millisecond, Backoff: time.Millisecond, MaxBackoff: time.Millisecond})
			f.enqueue(kind, job{N: 1})
			w := queue.NewWorker(small, queue.Config{Concurrency: 4, Poll: 50 * time.Millisecond})
			let := make(chan struct{})
			first := true
			kind.Handle(w, func(ctx context.Context, tx pgx.Tx, j job) error {
				if !first {
					return runs(ctx, tx, j)
				}
				first = false
				err := withoutConnections(small.Pool(), func() error { return runs(ctx, tx, j) })
				if stays {
					<-let
				}
				return err
			})
			stop := f.run(w)
			f.untilCount(1, 20*time.Second, "select count(*) from idem.tasks where finished_at is not null")
			close(let)
			_ = stop()
			if stays {
				f.wantCount(1, "select count(*) from idem.tasks where status = 'failed' and attempts = 1")
				return
			}
			f.wantCount(1, "select count(*) from idem.tasks where status = 'done' and attempts = 1")
			f.wantCount(1, "select count(*) from runs")
			if f.told(idem.TaskSnoozed) != 1 {
				t.Error("it is not told to be put off once")
			}
			if n := f.troubled("set its MaxConns above 4"); n != 1 {
				t.Errorf("the pool is told to be too small %d times, want once", n)
			}
		})
	}
}

// withoutConnections calls fn while others have every connection of the pool.
func withoutConnections(pool *pgxpool.Pool, fn func() error) error {
	for range pool.Config().MaxConns {
		conn, err := pool.Acquire(context.Background())
		if err != nil {
			return err
		}
		defer conn.Release()
	}
	return fn()
}

// A worker whose handlers need no more connections than there are says nothing.
func TestWorker_saysNothingOfAPoolThatSuffices(t *testing.T) {
	f := newFloor(t)
	most := int(f.pool.Config().MaxConns)
	w := queue.NewWorker(f.db, queue.Config{Poll: 50 * time.Millisecond, Concurrency: most})
	kind := queue.Define[job]("job", queue.Options{})
	kind.Handle(w, runs)
	queue.Define[job]("leased", queue.Options{Queue: "leased"}).HandleLeased(w, func(context.Context, job) error { return nil })
	f.enqueue(kind, job{N: 1})
	f.run(w)
	f.untilCount(1, 10*time.Second, "select count(*) from idem.tasks where status = 'done'")
	if n := f.troubled("MaxConns above"); n != 0 {
		t.Errorf("the pool is told to be too small %d times", n)
	}
}
