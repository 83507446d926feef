package queue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/faultproxy"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// effectRig is a database with a table that effects write to, and what its workers and
// guards have told.
type effectRig struct {
	t    *testing.T
	pool *pgxpool.Pool
	db   *idem.DB

	mu     sync.Mutex
	events []idem.Event
}

func newEffectRig(t *testing.T) *effectRig {
	t.Helper()
	r := effectRigOn(t, pgtest.New(t))
	r.exec("create table postings (id bigint generated always as identity, account text not null, amount bigint not null)")
	return r
}

func effectRigOn(t *testing.T, pool *pgxpool.Pool) *effectRig {
	t.Helper()
	r := &effectRig{t: t, pool: pool}
	var err error
	if r.db, err = idem.Open(t.Context(), pool, idem.Config{Observe: r.observe}); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *effectRig) observe(_ context.Context, e idem.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// work runs a worker with the given handlers until the test ends.
func (r *effectRig) work(handlers ...func(*queue.Worker)) {
	r.t.Helper()
	w := queue.NewWorker(r.db, queue.Config{Poll: 50 * time.Millisecond, Grace: 5 * time.Second})
	for _, handle := range handlers {
		handle(w)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	r.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			r.t.Errorf("the worker ended: %v", err)
		}
	})
}

func (r *effectRig) exec(sql string, args ...any) {
	r.t.Helper()
	if _, err := r.pool.Exec(context.Background(), sql, args...); err != nil {
		r.t.Fatal(err)
	}
}

// want fails unless a query counts so many.
func (r *effectRig) want(n int, sql string, args ...any) {
	r.t.Helper()
	var got int
	if err := r.pool.QueryRow(context.Background(), sql, args...).Scan(&got); err != nil {
		r.t.Fatal(err)
	}
	if got != n {
		r.t.Errorf("%s: got %d, want %d", sql, got, n)
	}
}

// await waits until so.
func (r *effectRig) await(what string, so func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(40 * time.Second); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.t.Fatalf("waited too long: %s; events %+v", what, r.events)
		}
	}
}

// anyAttempts is a number of attempts that is not looked at: a machine with much to do may
// cost a worker a short lease.
const anyAttempts = -1

// awaitStatus waits until a task has a status, and fails unless so many attempts have
// ended by then.
func (r *effectRig) awaitStatus(id int64, status queue.Status, attempts int) {
	r.t.Helper()
	var got queue.Status
	var counted int
	r.await(fmt.Sprintf("task %d is %s", id, status), func() bool {
		err := r.pool.QueryRow(context.Background(), "select status, attempts from idem.tasks where id = $1", id).Scan(&got, &counted)
		if err != nil {
			r.t.Fatal(err)
		}
		return got == status
	})
	if counted != attempts && attempts != anyAttempts {
		r.t.Errorf("task %d has used %d attempts, want %d", id, counted, attempts)
	}
}

// blocked waits until a session waits for a lock.
func (r *effectRig) blocked() {
	r.t.Helper()
	r.await("a session waits for a lock", func() (waits bool) {
		err := r.pool.QueryRow(context.Background(), `select exists (select from pg_stat_activity
			where datname = current_database() and wait_event_type = 'Lock')`).Scan(&waits)
		return err == nil && waits
	})
}

// told are the events so far of which so holds.
func (r *effectRig) told(so func(idem.Event) bool) (told []idem.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if so(e) {
			told = append(told, e)
		}
	}
	return told
}

func (r *effectRig) effects(result idem.EffectResult) int {
	return len(r.told(func(e idem.Event) bool { return e.Kind == idem.EventEffect && e.Result == result }))
}

func (r *effectRig) tasks(result idem.TaskResult) int {
	return len(r.told(func(e idem.Event) bool { return e.Kind == idem.EventTask && e.TaskResult == result }))
}

// order is the payload of these tests' tasks.
type order struct {
	ID   string `json:"id"`
	Card string `json:"card,omitempty"`
}

// quick are options with which a failed attempt is soon followed by the next.
func quick() queue.Options {
	return queue.Options{Backoff: 5 * time.Millisecond, MaxBackoff: 20 * time.Millisecond, Timeout: 10 * time.Second}
}

// enqueue enqueues a task.
func (r *effectRig) enqueue(k *queue.Kind[order], id string) int64 {
	r.t.Helper()
	e, err := k.Enqueue(r.t.Context(), r.pool, "order:"+id, order{ID: id})
	if err != nil {
		r.t.Fatal(err)
	}
	return e.ID
}

// effectGate stops whoever passes it first, until it is opened.
type effectGate struct {
	inside chan struct{}
	open   func()
	opened chan struct{}
	once   sync.Once
}

func newEffectGate(t *testing.T) *effectGate {
	g := &effectGate{inside: make(chan struct{}), opened: make(chan struct{})}
	g.open = sync.OnceFunc(func() { close(g.opened) })
	t.Cleanup(g.open)
	return g
}

func (g *effectGate) pass() {
	g.once.Do(func() {
		close(g.inside)
		<-g.opened
	})
}

func (g *effectGate) await(t *testing.T) {
	t.Helper()
	select {
	case <-g.inside:
	case <-time.After(40 * time.Second):
		t.Fatal("nobody has come to the gate")
	}
}

// posting is the effect that these tests' tasks apply.
var posting = idem.Effect{Scope: "shop", Key: "post:order:1", Input: 1500}

// post posts once, and returns which run it was.
func post(ctx context.Context, tx pgx.Tx, runs *atomic.Int64) (int64, error) {
	_, err := tx.Exec(ctx, "insert into postings (account, amount) values ('sales', 1500)")
	return runs.Add(1), err
}

// doors are the ways in which a task's handler applies an effect, each a handler that
// applies with do in a transaction.
var doors = map[string]func(r *effectRig, k *queue.Kind[order], do func(context.Context, pgx.Tx, order) error) func(*queue.Worker){
	"in the transaction": func(_ *effectRig, k *queue.Kind[order], do func(context.Context, pgx.Tx, order) error) func(*queue.Worker) {
		return func(w *queue.Worker) { k.Handle(w, do) }
	},
	"in the final transaction": func(_ *effectRig, k *queue.Kind[order], do func(context.Context, pgx.Tx, order) error) func(*queue.Worker) {
		return func(w *queue.Worker) {
			k.HandleLeased(w, func(ctx context.Context, o order) error { return do(ctx, idem.Tx(ctx), o) })
		}
	},
	"in a transaction of its own": func(r *effectRig, k *queue.Kind[order], do func(context.Context, pgx.Tx, order) error) func(*queue.Worker) {
		return func(w *queue.Worker) {
			k.HandleLeased(w, func(ctx context.Context, o order) error {
				return pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error { return do(ctx, tx, o) })
			})
		}
	},
}

// E1: two tasks that apply one effect at once. The events say whose effects they are.
func TestE1_ofTwoTasksThatApplyAtOnceOneIsSkipped(t *testing.T) {
	t.Parallel()
	for name, door := range doors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newEffectRig(t)
			k := queue.Define[order]("post", quick())
			g := newEffectGate(t)
			var runs atomic.Int64
			r.work(door(r, k, func(ctx context.Context, tx pgx.Tx, o order) error {
				got, _, err := idem.Apply(ctx, tx, posting, func(ctx context.Context, tx pgx.Tx) (int64, error) {
					g.pass()
					return post(ctx, tx, &runs)
				})
				if err == nil && got != 1 {
					t.Errorf("task %s got %d", o.ID, got)
				}
				return err
			}))
			one := r.enqueue(k, "1")
			g.await(t)
			two := r.enqueue(k, "2")
			r.blocked()
			g.open()
			r.awaitStatus(one, queue.StatusDone, 1)
			r.awaitStatus(two, queue.StatusDone, 1)
			r.want(1, "select count(*) from postings")
			r.want(1, "select count(*) from idem.applied_effects where status = 'applied' and cause_door = 'task' and cause_scope = 'default' and cause_key = $1", fmt.Sprint(one))
			for result, id := range map[idem.EffectResult]int64{idem.EffectApplied: one, idem.EffectSkipped: two} {
				told := r.told(func(e idem.Event) bool { return e.Kind == idem.EventEffect && e.Result == result })
				if len(told) != 1 {
					t.Fatalf("%d events say %s, want one", len(told), result)
				}
				e := told[0]
				if e.Queue != "default" || e.TaskKind != "post" || e.TaskID != id || e.Attempt != 1 || e.Effect != posting.Key || !e.Attempted || e.Key == "" {
					t.Errorf("an event is %+v", e)
				}
			}
		})
	}
}

// E1 above read committed: the worker runs the second again, which is no attempt.
func TestE1_aboveReadCommittedTheTaskIsRunAgainAtOnce(t *testing.T) {
	t.Parallel()
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			r := newEffectRig(t)
			k := queue.Define[order]("post", quick())
			g := newEffectGate(t)
			var runs, starts atomic.Int64
			r.work(func(w *queue.Worker) {
				k.HandleLeased(w, func(ctx context.Context, o order) error {
					starts.Add(1)
					return pgx.BeginTxFunc(ctx, r.pool, pgx.TxOptions{IsoLevel: level}, func(tx pgx.Tx) error {
						if _, err := tx.Exec(ctx, "select count(*) from postings"); err != nil { // its snapshot is taken
							return err
						}
						got, _, err := idem.Apply(ctx, tx, posting, func(ctx context.Context, tx pgx.Tx) (int64, error) {
							g.pass()
							return post(ctx, tx, &runs)
						})
						if err == nil && got != 1 {
							t.Errorf("task %s got %d", o.ID, got)
						}
						return err
					})
				})
			})
			one := r.enqueue(k, "1")
			g.await(t)
			two := r.enqueue(k, "2")
			r.blocked()
			g.open()
			r.awaitStatus(one, queue.StatusDone, 1)
			r.awaitStatus(two, queue.StatusDone, 1)
			r.want(1, "select count(*) from postings")
			if runs.Load() != 1 || starts.Load() != 3 {
				t.Errorf("the effect ran %d times in %d runs of handlers, want once in 3", runs.Load(), starts.Load())
			}
		})
	}
}

// E2: whoever waits for one that rolls back runs it.
func TestE2_aTaskThatWaitsForOneThatRollsBackApplies(t *testing.T) {
	t.Parallel()
	for name, door := range doors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newEffectRig(t)
			k := queue.Define[order]("post", quick())
			g := newEffectGate(t)
			var runs atomic.Int64
			r.work(door(r, k, func(ctx context.Context, tx pgx.Tx, o order) error {
				_, applied, err := idem.Apply(ctx, tx, posting, func(ctx context.Context, tx pgx.Tx) (int64, error) { return post(ctx, tx, &runs) })
				switch {
				case err != nil || !applied:
					t.Errorf("task %s: applied %v, %v", o.ID, applied, err)
				case o.ID == "1":
					g.pass()
					return queue.Fail(errors.New("no"))
				}
				return err
			}))
			one := r.enqueue(k, "1")
			g.await(t)
			two := r.enqueue(k, "2")
			r.blocked()
			g.open()
			r.awaitStatus(one, queue.StatusFailed, 1)
			r.awaitStatus(two, queue.StatusDone, 1)
			r.want(1, "select count(*) from postings")
			r.want(1, "select count(*) from idem.applied_effects where cause_key = $1", fmt.Sprint(two))
		})
	}
}

// E3: a handler that swallows what its effect has met leaves no fact and no half of it.
func TestE3_aTaskThatSwallowsLeavesNoFact(t *testing.T) {
	t.Parallel()
	bad := map[string]func(ctx context.Context, tx pgx.Tx) (int64, error){
		"an error": func(context.Context, pgx.Tx) (int64, error) { return 0, errors.New("no") },
		"a failed statement": func(ctx context.Context, tx pgx.Tx) (int64, error) {
			_, err := tx.Exec(ctx, "insert into postings (account) values (null)")
			return 0, err
		},
		"a panic": func(context.Context, pgx.Tx) (int64, error) { panic("boom") },
		"a panic amid rows": func(ctx context.Context, tx pgx.Tx) (int64, error) {
			_, _ = tx.Query(ctx, "select generate_series(1, 100000)")
			panic("boom")
		},
	}
	for name, door := range doors {
		if name == "in a transaction of its own" {
			continue // package idem's own test has it
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newEffectRig(t)
			k := queue.Define[order]("post", quick())
			r.work(door(r, k, func(ctx context.Context, tx pgx.Tx, o order) error {
				func() {
					defer func() { _ = recover() }()
					_, _, err := idem.Apply(ctx, tx, posting, func(ctx context.Context, tx pgx.Tx) (int64, error) {
						if _, err := post(ctx, tx, new(atomic.Int64)); err != nil {
							t.Error(err)
						}
						return bad[o.ID](ctx, tx)
					})
					if err == nil {
						t.Errorf("%s: Apply has not failed", o.ID)
					}
				}()
				_, err := tx.Exec(ctx, "insert into postings (account, amount) values ('own', 1)")
				return err
			}))
			for what := range bad {
				e, err := k.Enqueue(t.Context(), r.pool, queue.Unkeyed, order{ID: what})
				if err != nil {
					t.Fatal(err)
				}
				r.awaitStatus(e.ID, queue.StatusDone, 1)
			}
			r.want(len(bad), "select count(*) from postings where account = 'own'")
			r.want(0, "select count(*) from postings where account = 'sales'")
			r.want(0, "select count(*) from idem.applied_effects")
		})
	}
}

// E4: a task that applies with another input writes nothing.
func TestE4_aTaskWithAnotherInputIsAMismatch(t *testing.T) {
	t.Parallel()
	for name, door := range doors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newEffectRig(t)
			k := queue.Define[order]("post", quick())
			r.work(door(r, k, func(ctx context.Context, tx pgx.Tx, o order) error {
				e := posting
				e.Input = o.ID
				_, _, err := idem.Apply(ctx, tx, e, func(ctx context.Context, tx pgx.Tx) (int64, error) { return post(ctx, tx, new(atomic.Int64)) })
				if errors.Is(err, idem.ErrMismatch) {
					return queue.Fail(err)
				}
				return err
			}))
			r.awaitStatus(r.enqueue(k, "1"), queue.StatusDone, 1)
			r.awaitStatus(r.enqueue(k, "2"), queue.StatusFailed, 1)
			r.want(1, "select count(*) from postings")
			r.want(1, "select count(*) from idem.tasks where status = 'failed' and last_error like '%another input%'")
		})
	}
}

// E8: a worker that is frozen beyond its lease, before it applies, applies nothing, in
// whichever transaction. Its messages to the database are held, as those of a process
// that is frozen.
func TestE8_aFencedOutWorkerAppliesNothing(t *testing.T) {
	t.Parallel()
	for name, door := range doors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.NewURL(t)
			proxy := newEffectProxy(t, pgtest.Direct(t, url))
			frozen, free := effectRigOn(t, pgtest.Pool(t, proxy.URL())), effectRigOn(t, pgtest.Pool(t, url))
			free.exec("create table postings (account text, amount bigint)")
			o := quick()
			o.Lease = queue.MinLease
			k := queue.Define[order]("post", o)
			g := newEffectGate(t)
			var refused atomic.Value
			frozen.work(door(frozen, k, func(ctx context.Context, tx pgx.Tx, _ order) error {
				g.pass()
				late := idem.Effect{Scope: "shop", Key: "post:late"} // which the successor does not apply
				_, _, err := idem.Apply(context.WithoutCancel(ctx), tx, late, func(ctx context.Context, tx pgx.Tx) (int64, error) { return post(ctx, tx, new(atomic.Int64)) })
				refused.Store(errors.Is(err, idem.ErrLeaseLost))
				return err
			}))
			id := free.enqueue(k, "1")
			g.await(t)
			held := proxy.Add(faultproxy.Rule{When: func(m faultproxy.Message) bool { return m.Direction == faultproxy.FromClient }, Times: -1, Do: faultproxy.Hold()})
			free.work(door(free, k, func(ctx context.Context, tx pgx.Tx, _ order) error {
				_, _, err := idem.Apply(ctx, tx, posting, func(ctx context.Context, tx pgx.Tx) (int64, error) { return post(ctx, tx, new(atomic.Int64)) })
				return err
			}))
			free.awaitStatus(id, queue.StatusDone, anyAttempts)
			held.Disarm()
			held.Release()
			g.open()
			frozen.await("the frozen worker's attempt has ended", func() bool { return frozen.tasks(idem.TaskLeaseLost) == 1 })
			if refused.Load() != true || frozen.effects(idem.EffectFenced) != 1 {
				t.Errorf("the frozen worker's Apply was refused: %v; %d events say fenced", refused.Load(), frozen.effects(idem.EffectFenced))
			}
			free.want(1, "select count(*) from postings")
			free.want(1, "select count(*) from idem.applied_effects")
			free.awaitStatus(id, queue.StatusDone, anyAttempts)
		})
	}
}

func newEffectProxy(t *testing.T, url string) *faultproxy.Postgres {
	t.Helper()
	p, err := faultproxy.NewPostgres(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}
