package idemhttp_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/faultproxy"
	"github.com/idem-go/idem/internal/pgtest"
)

// The stated limits of a take-over: at once where the server sees the owner's
// end, and Route.Limit and five seconds where it sees nothing.
const (
	ownerLimit = time.Second
	seenEnd    = 3 * time.Second // of which most is the machine's
	unseenEnd  = ownerLimit + 5*time.Second + seenEnd
)

// owner works on the key of postOwned.
type owner struct {
	answer <-chan reply
	lose   func()      // takes it away from the database
	wake   func()      // lets it go on, if there is anything left of it
	lost   func() bool // whether its process has seen that it lost its lease
}

var (
	postOwned = post("/orders", "k", body)
	owned     = idemhttp.Route{Limit: ownerLimit}
)

// loss is a way to lose an owner.
type loss struct {
	begin  func(t *testing.T, url string) owner
	within time.Duration
	own    string // what the owner is told; empty if that depends
}

// owners are the ways to lose one in the transaction.
var owners = map[string]loss{
	"its backend is terminated":         {beginTerminated, seenEnd, ""},
	"its process is killed":             {beginKilled(pointInserted), seenEnd, ""},
	"its process is frozen":             {beginFrozen(pointInserted), unseenEnd, ""},
	"its packets are dropped":           {beginDropped(owned), unseenEnd, ""},
	"all of its database's are dropped": {beginSevered(pointInserted, owned), unseenEnd, ""},
}

func TestC5_D8_anotherProcessTakesOver(t *testing.T) {
	long(t)
	t.Parallel()
	takeOvers(t, owners, idemhttp.Route{Wait: time.Minute})
}

// takeOvers prints what becomes of the duplicates that wait at route for an owner that
// is lost, and of the owner when it wakes.
func takeOvers(t *testing.T, losses map[string]loss, route idemhttp.Route) {
	t.Helper()
	var mu sync.Mutex
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "the owner\tallowed\ttaken over after\tduplicates\towner's answer\torders")
	sideBySide(t, losses, func(t *testing.T, name string, c loss) {
		took, own := takeOver(t, c, route)
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(w, "%s\t%v\t%v\t%d x 201, one answer\t%s\t1\n", name, c.within, took.Round(10*time.Millisecond), ownedDuplicates, own)
	})
	_ = w.Flush() // into memory
	t.Log("\n" + table.String())
}

// sideBySide runs a test for each case, all of them at once however many -parallel
// allows: they wait most of their time. It returns when all have ended.
func sideBySide[C any](t *testing.T, cases map[string]C, test func(t *testing.T, name string, c C)) {
	t.Helper()
	var all sync.WaitGroup
	for name, c := range cases {
		all.Go(func() { t.Run(name, func(t *testing.T) { test(t, name, c) }) })
	}
	all.Wait()
}

const ownedDuplicates = 10

// takeOver loses an owner whose duplicates wait in another process, at route. It
// returns how long it took until they had their answer, and what the owner was told.
func takeOver(t *testing.T, c loss, route idemhttp.Route) (took time.Duration, own string) {
	t.Helper()
	url := pgtest.NewURL(t)
	b := rigOn(t, pgtest.Pool(t, url))
	var runs atomic.Int64
	b.handle("/orders", route, createOrder(&runs))
	b.serve()
	o := c.begin(t, url)
	duplicates := b.beginMany(ownedDuplicates, postOwned)
	if advisoryLocks || route.Lease > 0 {
		b.waiters("k", ownedDuplicates-1)
		if ran := runs.Load(); ran != 0 {
			t.Errorf("the other process ran the handler %d times beside its owner", ran)
		}
	}
	begun := time.Now()
	o.lose()
	taken := <-duplicates[0]
	took = time.Since(begun)
	b.want(taken, 201, "")
	if took > c.within {
		t.Errorf("the key was taken over after %v, want %v at most", took, c.within)
	}
	for _, d := range duplicates[1:] {
		if got := <-d; got.status != 201 || got.body != taken.body {
			t.Errorf("a duplicate got %d %q, another %q", got.status, got.body, taken.body)
		}
	}
	o.wake()
	own = b.wantNothingFrom(o, taken, route.Lease > 0)
	if c.own != "" && own != c.own {
		t.Errorf("the owner was told %s, want %s", own, c.own)
	}
	b.wantRows("select count(*) from orders", 1)
	b.wantRows("select count(*) from idem.idempotency_keys", 1)
	if ran := runs.Load(); ran != 1 {
		t.Errorf("the other process ran the handler %d times, want once", ran)
	}
	return took, own
}

// wantNothingFrom wants the owner to learn that it has lost: no answer, 503, or
// the answer of the one that took over; on a lease, that its key is in flight.
func (r *rig) wantNothingFrom(o owner, taken reply, leased bool) string {
	r.t.Helper()
	got := <-o.answer
	switch {
	case got.err != nil:
		return "none"
	case leased && got.status == 425 && got.problem() == "in-flight":
		if !o.lost() {
			r.t.Error("the owner was told that its key is in flight, and its process has not seen that the lease was lost")
		}
		return "425"
	case !leased && got.status == 201 && got.replayed() && got.body == taken.body:
		return "the replay"
	case got.status == 503 && got.problem() == "unavailable":
		return "503"
	}
	r.t.Errorf("the owner that was lost answered %d %q, replayed %v", got.status, got.body, got.replayed())
	return fmt.Sprint(got.status)
}

// beginHere is an owner in this process, which stops at a point of its handler.
func beginHere(t *testing.T, url, point string, route idemhttp.Route) (*rig, owner) {
	a := rigOn(t, pgtest.Pool(t, url))
	var runs atomic.Int64
	var g *gate
	create := createOrder(&runs)
	a.handle("/orders", route, func(w http.ResponseWriter, req *http.Request) {
		if point == pointEntered {
			g.pass()
		}
		create(w, req)
		if point == pointInserted {
			g.pass()
		}
	})
	a.serve()
	g = newGate(t)
	o := owner{answer: a.begin(postOwned), wake: g.release,
		lost: func() bool { return a.outcomes()[idem.OutcomeLeaseLost] == 1 }}
	g.inside(t)
	return a, o
}

func beginTerminated(t *testing.T, url string) owner {
	a, o := beginHere(t, url, pointInserted, owned)
	o.lose = func() {
		var gone bool
		err := a.pool.QueryRow(context.Background(), `select pg_terminate_backend(pid, 10000) from pg_stat_activity
			where datname = current_database() and state = 'idle in transaction' order by xact_start limit 1`).Scan(&gone)
		if err != nil || !gone {
			t.Errorf("the owner's backend was not ended: %v, %v", gone, err)
		}
	}
	return o
}

// beginDropped loses the connection on which the owner works, and no other.
func beginDropped(route idemhttp.Route) func(*testing.T, string) owner {
	return func(t *testing.T, url string) owner {
		proxy := newProxy(t, url)
		dropped := proxy.Add(faultproxy.Rule{When: faultproxy.Completes("INSERT 0 1"), Do: faultproxy.After(faultproxy.Drop())})
		_, o := beginHere(t, proxy.URL(), pointInserted, route)
		t.Cleanup(proxy.CutAll) // the pool would wait for what is silent
		o.lose = func() { <-dropped.Reached() }
		return o
	}
}

// beginSevered loses all that the owner's process has with the database, and
// what it will try.
func beginSevered(point string, route idemhttp.Route) func(*testing.T, string) owner {
	return func(t *testing.T, url string) owner {
		proxy := newProxy(t, url)
		_, o := beginHere(t, proxy.URL(), point, route)
		t.Cleanup(proxy.CutAll)
		o.lose = func() { proxy.Add(faultproxy.Rule{Times: -1, Do: faultproxy.Drop()}) }
		return o
	}
}

func newProxy(t *testing.T, url string) *faultproxy.Postgres {
	t.Helper()
	proxy, err := faultproxy.NewPostgres(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Errorf("the proxy: %v", err)
		}
	})
	return proxy
}

func beginKilled(point string, env ...string) func(*testing.T, string) owner {
	return func(t *testing.T, url string) owner {
		c := startChild(t, url, point, env...)
		o := owner{answer: c.begin(postOwned), lose: c.kill, wake: func() {}}
		c.await("reached ")
		return o
	}
}

// beginFrozen stops the owner's process, which goes on when the other has
// answered.
func beginFrozen(point string, env ...string) func(*testing.T, string) owner {
	return func(t *testing.T, url string) owner {
		c := startChild(t, url, point, append([]string{childLimit + "=" + ownerLimit.String()}, env...)...)
		o := owner{answer: c.begin(postOwned),
			lose: func() { c.signal(syscall.SIGSTOP) },
			wake: func() { c.goOn(); c.signal(syscall.SIGCONT) },
			lost: func() bool { return c.await("ended ") == string(idem.OutcomeLeaseLost) }}
		c.await("reached ")
		return o
	}
}
