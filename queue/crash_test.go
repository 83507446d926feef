package queue_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/faultproxy"
	"github.com/idem-go/idem/internal/pgsql/tasks"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// shortLease is the lease of tasks whose workers die.
const shortLease = time.Second

// wantTakenOver waits until n tasks are done by a second attempt, and fails unless the
// last of them is found to be a dead worker's within the lease and 2 seconds of the crash,
// and the first has been started again by then.
func (f *floor) wantTakenOver(n int, crash time.Time) {
	f.t.Helper()
	f.untilCount(n, 30*time.Second, "select count(*) from idem.tasks where status = 'done'")
	found := valueOf[float64](f, "select extract(epoch from max((errors -> 0 ->> 'at')::timestamptz) - $1)::float8 from idem.tasks", crash)
	limit := (shortLease + 2*time.Second).Seconds()
	if found > limit {
		f.t.Errorf("the last of them is found %.2fs after the crash, want %.2fs at most", found, limit)
	}
	first := valueOf[float64](f, "select extract(epoch from min(finished_at) - $1)::float8 from idem.tasks", crash)
	if first > limit { // handlers take no time: it was started before that
		f.t.Errorf("the first of them is done %.2fs after the crash, want it started again after %.2fs at most", first, limit)
	}
	done := valueOf[float64](f, "select extract(epoch from max(finished_at) - $1)::float8 from idem.tasks", crash)
	f.t.Logf("the last is found %.2fs after the crash; the first is done after %.2fs, the last after %.2fs; the lease is %v", found, first, done, shortLease)
	f.wantCount(n, "select count(*) from idem.tasks where attempts = 2 and last_error is not null and jsonb_array_length(errors) = 1")
	f.wantCount(n, "select count(*) from runs")
	f.wantCount(n, "select count(distinct n) from runs")
}

// now is the server's time.
func (f *floor) now() time.Time {
	f.t.Helper()
	return valueOf[time.Time](f, "select clock_timestamp()")
}

func TestT11_tasksOfAKilledWorkerRunAgain(t *testing.T) {
	for name, do := range map[string]string{"in the transaction": "freeze", "on a lease": "hang"} {
		t.Run(name, func(t *testing.T) {
			f := newFloorAt(t, pgtest.Direct(t, pgtest.NewURL(t))) // 50 transactions are open at a time
			o := orders{URL: f.url, Concurrency: 50, Lease: shortLease, Timeout: time.Minute, Leased: do == "hang"}
			f.enqueue(o.kind(), jobs(50, do)...)
			p := startProcess(t, o)
			f.until("50 handlers run", 20*time.Second, func() bool { return p.says("runs ") == 50 })
			w := f.worker()
			o.kind().Handle(w, runs)
			f.run(w)
			crash := f.now()
			p.kill()
			f.wantTakenOver(50, crash)
			if got := f.told(idem.TaskRetried); got != 50 {
				t.Errorf("%d attempts are told to have died, want 50", got)
			}
		})
	}
}

// However many tasks dead workers had, and whatever the planner knows of a new table:
// finding them takes a time that grows with their number and no faster.
func TestT11_tenThousandTasksOfDeadWorkersAreFoundAtOnce(t *testing.T) {
	f := newFloor(t)
	kind := queue.Define[job]("job", queue.Options{})
	f.enqueue(kind, jobs(10_000, "")...)
	f.exec(`with dead as (
			insert into idem.takes (fence, worker, queue, taken_at, lease_until, started, tasks)
			select gen_random_uuid(), gen_random_uuid(), 'default', clock_timestamp() - interval '1 minute', clock_timestamp() - interval '1 second', 5, array_agg(id order by id)
			from idem.tasks group by id % 100 returning *)
		update idem.tasks as c set status = 'running', takes = 1, fence = dead.fence, lease_until = dead.lease_until
		from dead, unnest(dead.tasks) as u (id) where c.id = u.id`)
	begun := time.Now()
	tag, err := f.pool.Exec(t.Context(), tasks.Rescue, "default", 100, "it died", uuid.New())
	if took := time.Since(begun); err != nil || tag.RowsAffected() != 10_000 || took > 10*time.Second {
		t.Errorf("%d were found in %v (%v), want all 10,000 in a second", tag.RowsAffected(), took, err)
	}
	f.wantCount(500, "select count(*) from idem.tasks where status = 'pending' and attempts = 1 and alone")
	f.wantCount(9500, "select count(*) from idem.tasks where status = 'pending' and attempts = 0 and not alone")
	f.wantCount(0, "select count(*) from idem.takes")
}

// through is a handle whose connections lead through a proxy.
func (f *floor) through(t *testing.T) (*idem.DB, *faultproxy.Postgres) {
	t.Helper()
	proxy, err := faultproxy.NewPostgres(f.url)
	if err != nil {
		t.Fatal(err)
	}
	config, err := pgxpool.ParseConfig(proxy.URL())
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 64
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		proxy.CutAll()
		pool.Close()
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	return f.open(pool), proxy
}

func TestT11_tasksOfAnUnreachableWorkerRunAgain(t *testing.T) {
	f := newFloor(t)
	db, proxy := f.through(t)
	kind := queue.Define[job]("job", queue.Options{Lease: shortLease})
	f.enqueue(kind, jobs(50, "")...)
	unreachable := queue.NewWorker(db, queue.Config{Concurrency: 50, Grace: -1, PollOnly: true})
	g := newGate()
	kind.Handle(unreachable, func(ctx context.Context, tx pgx.Tx, j job) error {
		if err := runs(ctx, tx, j); err != nil {
			return err
		}
		_ = g.wait(ctx, j.N)
		return nil // as if nothing had happened
	})
	stop := f.run(unreachable)
	g.await(t, 50)
	w := f.worker()
	kind.Handle(w, runs)
	f.run(w)
	crash := f.now()
	gone := proxy.Add(faultproxy.Rule{Name: "the network is gone", Times: -1, Do: faultproxy.Drop()})
	f.wantTakenOver(50, crash)
	gone.Disarm() // the network is back
	proxy.CutAll()
	close(g.open)
	if err := stop(); err != nil {
		t.Error(err)
	}
	f.wantCount(50, "select count(*) from runs")
}

func TestT12_aFrozenWorkersCompletionIsRefused(t *testing.T) {
	t.Parallel()
	for name, leased := range map[string]bool{"in the transaction": false, "on a lease": true} {
		t.Run(name, func(t *testing.T) {
			f := newFloor(t)
			o := orders{URL: f.url, Concurrency: 1, Lease: shortLease, Timeout: time.Minute, Leased: leased}
			f.enqueue(o.kind(), jobs(1, "freeze")...)
			p := startProcess(t, o)
			f.until("the handler runs", 20*time.Second, func() bool { return p.says("runs ") == 1 })
			p.signal(syscall.SIGSTOP)
			crash := f.now()
			w := f.worker()
			o.kind().Handle(w, runs)
			stop := f.run(w)
			if leased { // its transaction holds the task to its end, or the server ends it
				f.exec(`select pg_terminate_backend(pid) from pg_stat_activity
					where datname = current_database() and state = 'idle in transaction'`)
			}
			f.wantTakenOver(1, crash)
			f.wantCount(1, "select count(*) from runs where by = ''")
			if err := stop(); err != nil {
				t.Error(err)
			}
			p.signal(syscall.SIGCONT)
			f.until("the frozen one learns of it", 10*time.Second, func() bool { return p.says("ended lease_lost ") == 1 })
			if p.says("cause "+idem.ErrLeaseLost.Error()) != 1 {
				t.Errorf("its context ended otherwise: %v", p.lines)
			}
			p.stop()
			if p.says("ended ") != 1 {
				t.Errorf("it tells of more: %v", p.lines)
			}
			f.wantCount(1, "select count(*) from runs")
			f.wantCount(1, "select count(*) from idem.tasks where status = 'done' and attempts = 2")
		})
	}
}

// What refuses the completion is the fence, whether or not the worker has learnt of it.
func TestT12_aCompletionUnderAnOldFenceIsRefused(t *testing.T) {
	for name, leased := range map[string]bool{"in the transaction": false, "on a lease": true} {
		t.Run(name, func(t *testing.T) {
			f := newFloor(t)
			kind := queue.Define[job]("job", queue.Options{})
			f.enqueue(kind, job{N: 1})
			w := f.worker()
			g := newGate()
			if leased {
				kind.HandleLeased(w, func(ctx context.Context, j job) error { return g.wait(ctx, j.N) })
			} else {
				kind.Handle(w, func(ctx context.Context, tx pgx.Tx, j job) error {
					return errors.Join(runs(ctx, tx, j), g.wait(ctx, j.N))
				})
			}
			f.run(w)
			g.await(t, 1)
			f.exec(`update idem.tasks set status = 'done', fence = gen_random_uuid(), takes = 2, attempts = 2, lease_until = null,
				finished_at = clock_timestamp(), expires_at = clock_timestamp() + interval '1 day', last_error = 'another''s'`)
			close(g.open)
			f.until("it is told to be lost", 10*time.Second, func() bool { return f.told(idem.TaskLeaseLost) == 1 })
			f.wantCount(0, "select count(*) from runs")
			f.wantCount(1, "select count(*) from idem.tasks where status = 'done' and attempts = 2 and last_error = 'another''s'")
			if done := f.told(idem.TaskDone); done != 0 {
				t.Errorf("it is told to be done %d times", done)
			}
		})
	}
}

// A frozen worker's open transaction holds rows that its successor needs: not for longer
// than the handler's time and 5 seconds.
func TestT12_aFrozenTransactionBlocksNoLongerThanItsLimit(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits for a limit of 6 seconds")
	}
	f := newFloor(t)
	f.exec("alter table runs add primary key (n)")
	o := orders{URL: f.url, Concurrency: 1, Lease: shortLease, Timeout: time.Second}
	f.enqueue(o.kind(), jobs(1, "freeze")...)
	p := startProcess(t, o)
	f.until("the handler runs", 20*time.Second, func() bool { return p.says("runs ") == 1 })
	p.signal(syscall.SIGSTOP)
	begun := f.now()
	slow := queue.Define[job]("job", queue.Options{Lease: shortLease, Timeout: time.Minute})
	w := f.worker()
	slow.Handle(w, runs)
	f.run(w)
	f.untilCount(1, 30*time.Second, "select count(*) from idem.tasks where status = 'done'")
	took := valueOf[float64](f, "select extract(epoch from finished_at - $1)::float8 from idem.tasks", begun)
	if took < 4 || took > 1+5+3 {
		t.Errorf("it took %.1fs; want the 6s after which the server ends the transaction", took)
	}
	p.signal(syscall.SIGCONT)
	f.until("the frozen one learns of it", 10*time.Second, func() bool { return p.says("ended lease_lost ") == 1 })
	f.wantCount(1, "select count(*) from runs where by = ''")
}

func TestT13_aTaskThatKillsItsProcessUsesUpItsOwnAttempts(t *testing.T) {
	f := newFloor(t)
	o := orders{URL: f.url, Concurrency: 20, Lease: shortLease, Timeout: time.Minute}
	all := jobs(501, "work")
	all[100].Do = "die"
	f.enqueue(o.kind(), all...)
	deaths := 0
	for unfinished := 501; unfinished > 0; unfinished = valueOf[int](f, "select count(*) from idem.tasks where finished_at is null") {
		p := startProcess(t, o)
		over := func() bool {
			select {
			case <-p.gone:
				deaths++
				return true
			default:
				return valueOf[int](f, "select count(*) from idem.tasks where finished_at is null") == 0
			}
		}
		f.until("all are done, or the process is dead", 30*time.Second, over)
		p.kill()
	}
	if deaths != 3 {
		t.Errorf("%d processes died, want 3", deaths)
	}
	f.wantCount(1, "select count(*) from idem.tasks where status = 'failed' and attempts = 3 and last_error like '%died%'")
	f.wantCount(500, "select count(*) from idem.tasks where status = 'done' and attempts <= 2")
	f.wantCount(500, "select count(*) from runs")
	f.wantCount(500, "select count(distinct n) from runs")
	beside := valueOf[int](f, "select count(*) from idem.tasks where status = 'done' and attempts = 2")
	if beside > 3*19 {
		t.Errorf("%d others have used two attempts; want those 19 at most that ran beside it each time", beside)
	}
	t.Logf("%d others were running beside it, and ran again", beside)
}
