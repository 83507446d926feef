package queue_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/faultproxy"
	"github.com/idem-go/idem/internal/pgsql/tasks"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/internal/shop/bank"
	"github.com/idem-go/idem/queue"
)

// The cards of the two sorts of banks: one that honours keys, and one that honours none.
var matrixCards = []string{"tok_ok", "tok_keyless"}

// matrixCommit is a place around the COMMIT of a task that has charged.
type matrixCommit struct {
	name string
	when func() func(faultproxy.Message) bool // each is a new one, since it counts
	do   faultproxy.Action
	not  queue.Status // where the task cannot stand there
}

var matrixCommits = []matrixCommit{
	{"before its COMMIT", func() func(faultproxy.Message) bool { return matrixBegins(tasks.Done) }, faultproxy.Hold(), queue.StatusDone},
	// The server has it, and may be late.
	{"inside its COMMIT", func() func(faultproxy.Message) bool { return matrixAfterDone(faultproxy.Executes("commit")) }, faultproxy.After(faultproxy.Drop(faultproxy.FromServer)), ""},
	{"after its COMMIT", func() func(faultproxy.Message) bool { return matrixAfterDone(faultproxy.Completes("COMMIT")) }, faultproxy.Hold(), queue.StatusRunning},
}

// E6, E7: a worker whose task has charged is killed, or loses its connection, around
// the COMMIT that ends the task. Whether or not the bank honours keys, it has
// charged once and that is posted once: the result is recorded before.
func TestE6_E7_aWorkerThatIsStruckAroundItsCommit(t *testing.T) {
	t.Parallel()
	url := pgtest.NewURL(t)
	c := &effectCrash{t: t, url: url, pool: pgtest.Pool(t, url), bank: startEffectBank(t)}
	if _, err := c.pool.Exec(t.Context(), "create table postings (reference text, account text, amount bigint)"); err != nil {
		t.Fatal(err)
	}
	for _, card := range matrixCards {
		for n, end := range matrixCommits {
			for _, fault := range []string{faultKill, faultCut} {
				t.Run(fmt.Sprint(card, " ", end.name, " ", fault), func(t *testing.T) {
					c.strikeAtEnd(t, money{fmt.Sprintf("charge:%s:%d:%.4s", card, n, fault), card, 1500}, end, fault)
				})
			}
		}
	}
}

// strikeAtEnd strikes a worker process at a message, and has it go on, or another.
func (c *effectCrash) strikeAtEnd(t *testing.T, m money, end matrixCommit, fault string) {
	proxy := newEffectProxy(t, pgtest.Direct(t, c.url))
	held := proxy.Add(faultproxy.Rule{Name: end.name, When: end.when(), Do: end.do})
	// A COMMIT that has arrived is not to be cancelled by whoever lost the reply.
	proxy.Add(faultproxy.Rule{Name: "cancel", When: faultproxy.Is(faultproxy.FromClient, "CancelRequest"), Times: -1, Do: faultproxy.Cut()})
	kind := moneyKind(m.Reference)
	e, err := kind.Enqueue(t.Context(), c.pool, m.Reference, m)
	if err != nil {
		t.Fatal(err)
	}
	child, err := startEffectChild(effectOrders{proxy.URL(), c.bank.URL, m.Reference, "nowhere"})
	if err != nil {
		t.Fatal(err)
	}
	defer child.kill()
	select {
	case <-held.Reached():
	case <-time.After(matrixPatience):
		t.Fatal("the end was not reached")
	}
	before := c.standing(t, e.ID)
	if before.status == end.not {
		t.Errorf("it is %s there", before.status)
	}
	if fault == faultKill {
		child.kill()
		held.Cut()
		proxy.CutAll()
		stop := effectRigOn(t, c.pool).survive(kind, mover{bank: c.bank.URL, at: func(string, money) {}})
		defer stop()
	} else {
		held.Cut()
		proxy.CutAll() // also of what is not held
		if err := child.await("ended done", 1); err != nil {
			t.Error(err)
		}
	}
	ended, err := c.finished(e.ID)
	if err != nil {
		t.Fatal(err)
	}
	c.right(t.Name(), pointPosted, m, ended)
	if after := c.standing(t, e.ID); before.status == queue.StatusDone && after != before {
		t.Errorf("it was done after %d attempts, and is after %d", before.attempts, after.attempts)
	}
}

// matrixStanding is where a task stands, and how often its handler was started.
type matrixStanding struct {
	status   queue.Status
	attempts int
}

func (c *effectCrash) standing(t *testing.T, id int64) (s matrixStanding) {
	t.Helper()
	if err := c.pool.QueryRow(t.Context(), "select status, attempts from idem.tasks where id = $1", id).Scan(&s.status, &s.attempts); err != nil {
		t.Fatal(err)
	}
	return s
}

// E6, E7: a worker is told to end within a call that the bank has carried out, and has no
// time left. The task is given back at no cost of attempts; what honours keys is called
// again with the same one, and what does not never is.
func TestE6_E7_aWorkerThatDrainsWithinACall(t *testing.T) {
	t.Parallel()
	for _, card := range matrixCards {
		t.Run(card, func(t *testing.T) {
			t.Parallel()
			r, b, o := newEffectRig(t), startEffectBank(t), order{"1", card}
			options := quick()
			options.MaxAttempts = 3
			k := queue.Define[order]("charge", options)
			w := queue.NewWorker(r.db, queue.Config{Poll: 50 * time.Millisecond, Grace: -1})
			charged := make(chan struct{})
			k.HandleLeased(w, func(ctx context.Context, o order) error {
				_, err := idem.Call(ctx, o.effect(), func(ctx context.Context, key string) (bank.Receipt, error) {
					receipt, err := b.charge(ctx, key, o)
					if err == nil {
						close(charged)
						<-ctx.Done()
						err = context.Cause(ctx)
					}
					return receipt, err
				})
				return err
			})
			id := r.enqueueOrder(k, o)
			ctx, drain := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- w.Run(ctx) }()
			<-charged
			drain()
			wantEnd(t, ended, nil)
			r.awaitStatus(id, queue.StatusPending, 0)
			if r.tasks(idem.TaskSnoozed) != 1 {
				t.Error("it is not told to be put off")
			}
			r.work(b.paying(k, nil))
			if card == "tok_keyless" {
				r.awaitStatus(id, queue.StatusFailed, 3)
				b.want(o, 1, 1)
				r.wantEffect(o, "unknown")
				r.want(0, "select count(*) from postings")
				return
			}
			r.awaitStatus(id, queue.StatusDone, 1)
			b.want(o, 1, 2)
			r.want(1, "select count(*) from postings")
		})
	}
}

// matrixAway is a worker from which the database goes away, at the place at which its
// handler waits.
type matrixAway struct {
	*effectRig // of the worker
	real       *effectRig
	proxy      *faultproxy.Postgres
	bank       *effectBank
	kind       *queue.Kind[order]
	id         int64
	called     chan error // what the first Call has come to
	goOn       func()
}

// goesAway starts the worker and takes the database from it before the call of o's effect,
// or behind it.
func goesAway(t *testing.T, o order, lease time.Duration, behind bool) *matrixAway {
	t.Helper()
	url := pgtest.NewURL(t)
	proxy := newEffectProxy(t, pgtest.Direct(t, url))
	a := &matrixAway{effectRig: effectRigOn(t, pgtest.Pool(t, proxy.URL())), real: effectRigOn(t, pgtest.Pool(t, url)), proxy: proxy,
		bank: startEffectBank(t), called: make(chan error, 10)}
	a.real.exec("create table postings (account text, amount bigint)")
	options := quick()
	options.Lease, options.MaxAttempts, options.Timeout = lease, 3, time.Minute
	a.kind = queue.Define[order]("charge", options)
	gate := newEffectGate(t)
	a.goOn = gate.open
	a.work(func(w *queue.Worker) {
		a.kind.HandleLeased(w, func(ctx context.Context, o order) error {
			if !behind {
				gate.pass()
			}
			receipt, err := idem.Call(ctx, o.effect(), func(ctx context.Context, key string) (bank.Receipt, error) {
				receipt, err := a.bank.charge(ctx, key, o)
				if behind {
					gate.pass()
				}
				return receipt, err
			})
			a.called <- err
			if err != nil {
				return err
			}
			return postCharge(ctx, o, receipt)
		})
	})
	a.id = a.real.enqueueOrder(a.kind, o)
	gate.await(t)
	proxy.Refuse(true)
	proxy.CutAll()
	t.Cleanup(func() { proxy.Refuse(false) })
	return a
}

func (a *matrixAway) isBack() { a.proxy.Refuse(false) }

// troubles are how often the worker has told that it cannot do what it has to.
func (a *matrixAway) troubles() int {
	return len(a.told(func(e idem.Event) bool { return e.Kind == idem.EventWorker }))
}

// Before the intention nothing is called while the database is away: that is an attempt.
func TestE6_E7_theDatabaseIsAwayBeforeACall(t *testing.T) {
	t.Parallel()
	for _, card := range matrixCards {
		t.Run(card, func(t *testing.T) {
			t.Parallel()
			o := order{"1", card}
			a := goesAway(t, o, queue.DefaultLease, false)
			a.goOn()
			if err := <-a.called; err == nil {
				t.Error("the call went well")
			}
			a.bank.want(o, 0, 0)
			a.isBack()
			a.real.awaitStatus(a.id, queue.StatusDone, anyAttempts)
			a.bank.want(o, 1, 1)
			a.real.want(1, "select count(*) from postings")
			a.real.want(1, "select count(*) from idem.tasks where attempts > 1")
			if a.tasks(idem.TaskRetried) == 0 {
				t.Error("it is not told to be tried again")
			}
		})
	}
}

// Behind a call what that has come to is recorded when the database is back.
func TestE6_E7_theDatabaseIsAwayBehindACall(t *testing.T) {
	t.Parallel()
	for _, card := range matrixCards {
		t.Run(card, func(t *testing.T) {
			t.Parallel()
			o := order{"1", card}
			a := goesAway(t, o, queue.DefaultLease, true)
			a.goOn()
			before := a.troubles()
			a.await("the worker misses the database", func() bool { return a.troubles() > before })
			a.isBack()
			a.real.awaitStatus(a.id, queue.StatusDone, 1)
			a.bank.want(o, 1, 1)
			a.real.want(1, "select count(*) from postings")
		})
	}
}

// If it is away for too long, the outcome is lost with the lease: what honours keys is
// called again, with the same one, and what does not is unknown.
func TestE6_E7_theDatabaseIsAwayForTooLongBehindACall(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits for a limit of 10 s")
	}
	for _, card := range matrixCards {
		t.Run(card, func(t *testing.T) {
			t.Parallel()
			o := order{"1", card}
			a := goesAway(t, o, 2*time.Second, true)
			a.goOn()
			a.await("it is told to be lost", func() bool { return a.tasks(idem.TaskLeaseLost) > 0 })
			a.isBack()
			if card == "tok_keyless" {
				a.real.awaitStatus(a.id, queue.StatusFailed, 3)
				a.bank.want(o, 1, 1)
				a.real.wantEffect(o, "unknown")
				a.real.want(0, "select count(*) from postings")
				return
			}
			a.real.awaitStatus(a.id, queue.StatusDone, anyAttempts)
			a.bank.want(o, 1, 2)
			a.real.want(1, "select count(*) from postings")
		})
	}
}
