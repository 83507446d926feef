package idemhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/faultproxy"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// second is the shortest lease.
const second = time.Second

// kept is a lease that is to be kept: longer than a busy machine stands still.
const kept = 2 * second

// beyond waits until the owner of key has held it for so long, and fails if its lease
// was over at any moment that was looked at.
func beyond(t *testing.T, pool *pgxpool.Pool, key string, held time.Duration) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s is held for %v", key, held), func() bool {
		var live, long bool
		err := pool.QueryRow(context.Background(), `select lease_until > clock_timestamp(), created_at + $2::interval < clock_timestamp()
			from idem.idempotency_keys where key = $1 and state = 'claimed'`, key, held).Scan(&live, &long)
		if err != nil || !live {
			t.Fatalf("the lease of %s: live %v, %v", key, live, err)
		}
		return long
	})
}

// wantReplays fails unless the duplicates get the first one's answer.
func wantReplays(t *testing.T, first reply, duplicates []<-chan reply) {
	t.Helper()
	for _, d := range duplicates {
		if got := <-d; got.status != first.status || got.body != first.body || !got.replayed() {
			t.Errorf("a duplicate got %d %q, replayed %v; the first %d %q", got.status, got.body, got.replayed(), first.status, first.body)
		}
	}
}

func TestLease_handlerThatTakesThreeLeasesKeepsIt(t *testing.T) {
	t.Parallel()
	url := pgtest.NewURL(t)
	a := newSlow(rigOn(t, poolOf(t, url, 2)), idemhttp.Route{Lease: kept})
	b := newSlow(rigOn(t, pgtest.Pool(t, url)), idemhttp.Route{Lease: kept, Wait: time.Minute})
	held := make(chan func(), 1)
	a.handle("/wait", idemhttp.Route{Lease: kept}, func(w http.ResponseWriter, _ *http.Request) {
		for range 2 { // nobody gets a connection of the pool any more
			conn, err := a.pool.Acquire(t.Context())
			if err != nil {
				t.Error(err)
			}
			defer conn.Release()
		}
		a.pass()
		w.WriteHeader(http.StatusCreated)
		held <- func() {}
	})
	b.handle("/wait", idemhttp.Route{Lease: kept, Wait: time.Minute}, func(w http.ResponseWriter, _ *http.Request) {
		b.runs.Add(1)
		w.WriteHeader(http.StatusTeapot)
	})
	first := a.begin(post("/wait", "k", "{}"))
	a.inside(t)
	duplicates := b.beginMany(5, post("/wait", "k", "{}"))
	b.waiters("k", 4)
	beyond(t, b.pool, "k", 3*kept)
	a.release()
	got := <-first
	a.want(got, 201, "")
	wantReplays(t, got, duplicates)
	if n := b.runs.Load(); n != 0 {
		t.Errorf("the other process ran the handler %d times, want never", n)
	}
}

// The connection of the heartbeat dies without a word: that costs a renewal, and not
// the lease.
func TestLease_silentHeartbeatConnectionCostsNoLease(t *testing.T) {
	long(t)
	t.Parallel()
	url := pgtest.NewURL(t)
	proxy := newProxy(t, pgtest.Direct(t, url))
	a := newSlow(rigOn(t, pgtest.Pool(t, proxy.URL())), idemhttp.Route{Lease: 3 * second})
	b := newSlow(rigOn(t, pgtest.Pool(t, url)), idemhttp.Route{Lease: 3 * second, Wait: time.Minute})
	silent := proxy.Add(faultproxy.Rule{When: faultproxy.Nth(2, faultproxy.Executes("with mine as materialized")), Do: faultproxy.Drop()})
	var lost atomic.Bool
	for _, p := range []*slow{a, b} {
		p.handle("/wait", idemhttp.Route{Lease: 3 * second, Wait: time.Minute}, func(w http.ResponseWriter, req *http.Request) {
			p.runs.Add(1)
			p.pass()
			lost.Store(lost.Load() || req.Context().Err() != nil)
			w.WriteHeader(http.StatusCreated)
		})
	}
	first := a.begin(post("/wait", "k", "{}"))
	a.inside(t)
	duplicates := b.beginMany(2, post("/wait", "k", "{}"))
	<-silent.Reached()
	beyond(t, b.pool, "k", 9*second)
	a.release()
	got := <-first
	a.want(got, 201, "")
	wantReplays(t, got, duplicates)
	if lost.Load() || b.runs.Load() != 0 {
		t.Errorf("the lease was lost: %v; the other process ran the handler %d times", lost.Load(), b.runs.Load())
	}
}

// A transaction of the handler's own holds its key's row: the heartbeat goes on for
// the others, and the row's owner does not lose it, neither meanwhile nor after it, as
// long as the transaction is shorter than its lease.
func TestLease_heartbeatSkipsARowThatItsOwnerHolds(t *testing.T) {
	t.Parallel()
	url := pgtest.NewURL(t)
	a := newSlow(rigOn(t, pgtest.Pool(t, url)), idemhttp.Route{Lease: kept})
	b := newSlow(rigOn(t, pgtest.Pool(t, url)), idemhttp.Route{Lease: kept, Wait: time.Minute})
	var cause atomic.Value
	applying := func(p *slow) http.HandlerFunc {
		return func(w http.ResponseWriter, req *http.Request) {
			p.runs.Add(1)
			err := pgx.BeginFunc(req.Context(), p.pool, func(tx pgx.Tx) error {
				_, _, err := idem.Apply(req.Context(), tx, idem.Effect{Scope: "shop", Key: "early"}, func(context.Context, pgx.Tx) (int, error) { return 1, nil })
				p.pass()
				return err
			})
			if err != nil {
				cause.Store(fmt.Sprint(err, context.Cause(req.Context())))
			}
			if err := insertOrder(req); err != nil {
				cause.Store(fmt.Sprint(err, context.Cause(req.Context())))
			}
			w.WriteHeader(http.StatusCreated)
		}
	}
	for _, p := range []*slow{a, b} {
		p.handle("/apply", idemhttp.Route{Lease: 10 * second, Wait: time.Minute}, applying(p))
	}
	a.handle("/wait", idemhttp.Route{Lease: kept}, func(w http.ResponseWriter, _ *http.Request) {
		a.pass()
		w.WriteHeader(http.StatusCreated)
	})
	first := a.begin(post("/apply", "k", "{}"))
	a.inside(t)
	other := a.begin(post("/wait", "other", "{}"))
	duplicates := b.beginMany(3, post("/apply", "k", "{}"))
	a.inside(t)
	beyond(t, b.pool, "other", 3*kept)
	a.release()
	got := <-first
	a.want(got, 201, "")
	a.want(<-other, 201, "")
	b.release()
	wantReplays(t, got, duplicates)
	if n := b.runs.Load(); n != 0 || cause.Load() != nil {
		t.Errorf("the other process ran the handler %d times, want never; %v", n, cause.Load())
	}
	a.wantRows("select count(*) from idem.applied_effects where status = 'applied'", 1)
}

// steal takes a key over as another process does once its lease is over.
func (r *rig) steal(key string) {
	r.t.Helper()
	tag, err := r.pool.Exec(context.Background(), `update idem.idempotency_keys
		set fence = gen_random_uuid(), lease_until = clock_timestamp() + interval '1 minute' where key = $1 and state = 'claimed'`, key)
	if err != nil || tag.RowsAffected() != 1 {
		r.t.Fatalf("stealing %s: %v, %v", key, tag, err)
	}
}

// letGoOf ends a stolen lease.
func (r *rig) letGoOf(key string) {
	r.t.Helper()
	if _, err := r.pool.Exec(context.Background(), "update idem.idempotency_keys set lease_until = clock_timestamp() where key = $1", key); err != nil {
		r.t.Fatal(err)
	}
}

func TestLease_lostLeaseCancelsTheHandler(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	entered, ended := make(chan struct{}), make(chan []error, 1)
	r.handle("/x", idemhttp.Route{Lease: second, Wait: -1}, func(w http.ResponseWriter, req *http.Request) {
		ctx := req.Context()
		close(entered)
		<-ctx.Done()
		errs := []error{context.Cause(ctx)}
		late := context.WithoutCancel(ctx)
		_, err := idem.Tx(late).Exec(late, "insert into orders (customer, amount) values (1, 1)")
		errs = append(errs, err)
		_, err = idem.Call(late, charge(), func(context.Context, string) (receipt, error) {
			t.Error("the call was made")
			return receipt{}, nil
		})
		errs = append(errs, err)
		err = pgx.BeginFunc(late, r.pool, func(tx pgx.Tx) error {
			_, _, err := idem.Apply(late, tx, idem.Effect{Scope: "shop", Key: "early"}, func(context.Context, pgx.Tx) (int, error) {
				t.Error("the effect was applied")
				return 1, nil
			})
			return err
		})
		ended <- append(errs, err)
		w.WriteHeader(http.StatusCreated)
	})
	r.serve()
	first := r.begin(post("/x", "k", "{}"))
	<-entered
	r.steal("k")
	got := <-first
	r.want(got, 425, "in-flight")
	if got.header.Get("Retry-After") == "" {
		t.Error("Retry-After is missing")
	}
	for i, err := range <-ended {
		if i == 1 && errors.Is(err, pgx.ErrTxClosed) {
			continue // the handler was answered for by then
		}
		if !errors.Is(err, idem.ErrLeaseLost) {
			t.Errorf("%d: got %v, want ErrLeaseLost", i, err)
		}
	}
	if n := r.outcomes()[idem.OutcomeLeaseLost]; n != 1 {
		t.Errorf("outcomes are %v, want one lease_lost", r.outcomes())
	}
	r.mu.Lock()
	for _, e := range r.events {
		if e.Outcome == idem.OutcomeLeaseLost && (e.Err == nil || !errors.Is(e.Err, idem.ErrLeaseLost) || strings.Contains(e.Err.Error(), "Route.Limit")) {
			t.Errorf("the event's error is %v", e.Err)
		}
	}
	r.mu.Unlock()
	r.wantRows("select count(*) from orders", 0)
	r.wantRows("select count(*) from idem.applied_effects", 0)
	r.letGoOf("k")
}

// Without a statement that meets the fence, the answer itself does.
func TestLease_lostLeaseStoresNothing(t *testing.T) {
	t.Parallel()
	for _, writes := range []bool{false, true} {
		for _, status := range []string{"201", "409", "422", "500"} {
			t.Run(fmt.Sprint(status, " writes ", writes), func(t *testing.T) {
				r := newRig(t)
				var g *gate
				r.handle("/x", idemhttp.Route{Lease: time.Minute, Wait: -1}, func(w http.ResponseWriter, req *http.Request) {
					g.pass()
					if writes {
						if err := insertOrder(req); !errors.Is(err, idem.ErrLeaseLost) {
							t.Errorf("the final transaction: %v", err)
						}
					}
					said, _ := io.ReadAll(req.Body)
					var n int
					_, _ = fmt.Sscan(string(said), &n)
					w.WriteHeader(n)
				})
				r.serve()
				g = newGate(t)
				first := r.begin(post("/x", "k", status))
				g.inside(t)
				r.steal("k")
				g.release()
				r.want(<-first, 425, "in-flight")
				if n := r.outcomes()[idem.OutcomeLeaseLost]; n != 1 {
					t.Errorf("outcomes are %v, want one lease_lost", r.outcomes())
				}
				r.wantRows("select count(*) from orders", 0)
				r.wantState("k", "claimed")
				r.letGoOf("k")
			})
		}
	}
}

// sessions counts the sessions of the test's database that are not the pool's.
func (r *rig) sessions() int {
	r.t.Helper()
	var n int
	err := r.pool.QueryRow(context.Background(), `select count(*) from pg_stat_activity
		where datname = current_database() and backend_type = 'client backend'`).Scan(&n)
	if err != nil {
		r.t.Fatal(err)
	}
	return n - int(r.pool.Stat().TotalConns())
}

// renewing reports whether a goroutine renews leases.
func renewing() bool {
	stacks := make([]byte, 1<<20)
	return strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "claim.(*Leases).run")
}

func TestLease_heartbeatEndsWithTheLastLease(t *testing.T) { // not parallel: others have heartbeats, too
	url := pgtest.Direct(t, pgtest.NewURL(t)) // a pooler keeps what is closed
	s := newSlow(rigOn(t, pgtest.Pool(t, url)), idemhttp.Route{Lease: second})
	for round := range 2 {
		s.gate = newGate(t)
		all := make([]<-chan reply, 0, 3)
		for i := range 3 {
			all = append(all, s.begin(post("/slow", fmt.Sprintf("k%d-%d", round, i), "201")))
			s.inside(t)
		}
		eventually(t, "one connection renews the leases", func() bool { return s.sessions() == 1 })
		if !renewing() {
			t.Error("nothing renews the leases")
		}
		s.release()
		for _, a := range all {
			s.want(<-a, 201, "")
		}
		eventually(t, "the heartbeat's connection is closed", func() bool { return s.sessions() == 0 })
		eventually(t, "the heartbeat's goroutine has ended", func() bool { return !renewing() })
	}
}

// killAll ends every session of the test's database but its own.
func killAll(t *testing.T, pool *pgxpool.Pool) (ended int) {
	t.Helper()
	err := pool.QueryRow(context.Background(), `select count(pg_terminate_backend(pid, 10000)) from pg_stat_activity
		where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'`).Scan(&ended)
	if err != nil {
		t.Fatal(err)
	}
	return ended
}

func TestLease_killingEveryConnectionCostsNoDoubleCall(t *testing.T) {
	t.Parallel()
	url := pgtest.NewURL(t)
	r, killer := rigOn(t, pgtest.Pool(t, url)), poolOf(t, pgtest.Direct(t, url), 1)
	var calls, runs atomic.Int64
	var g *gate
	r.handle("/pay", idemhttp.Route{Lease: kept, Wait: time.Minute}, func(w http.ResponseWriter, req *http.Request) {
		runs.Add(1)
		said, _ := io.ReadAll(req.Body)
		e := idem.Effect{Scope: "shop", Key: "charge:" + string(said), Input: 1}
		got, err := idem.Call(req.Context(), e, func(context.Context, string) (receipt, error) {
			g.pass()
			return receipt{calls.Add(1)}, nil
		})
		if err == nil {
			err = insertOrder(req)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprint(w, got.Number)
	})
	r.serve()
	g = newGate(t)
	const intents = 8
	firsts, duplicates := make([]<-chan reply, intents), make([]<-chan reply, intents)
	for i := range intents {
		firsts[i] = r.begin(post("/pay", fmt.Sprint("k", i), fmt.Sprint(i)))
	}
	for range intents {
		g.inside(t)
	}
	for i := range intents {
		duplicates[i] = r.begin(post("/pay", fmt.Sprint("k", i), fmt.Sprint(i)))
	}
	for range 4 {
		eventually(t, "there is something to end", func() bool { return killAll(t, killer) > 0 })
	}
	for i := range intents {
		beyond(t, killer, fmt.Sprint("k", i), 2*kept)
	}
	killAll(t, killer)
	g.release()
	for i := range intents {
		first := <-firsts[i]
		r.want(first, 201, "")
		wantReplays(t, first, duplicates[i:i+1])
	}
	if calls.Load() != intents || runs.Load() != intents {
		t.Errorf("%d calls in %d runs, want %d of each", calls.Load(), runs.Load(), intents)
	}
	r.wantRows("select count(*) from orders", intents)
	r.wantRows("select count(*) from idem.applied_effects where status = 'applied' and calls = 1", intents)
}
