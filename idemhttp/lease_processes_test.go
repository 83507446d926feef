package idemhttp_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5"
)

// leased is a route of two processes: its lease is long enough not to matter.
var leased = idemhttp.Route{Lease: time.Minute, Wait: time.Minute}

func TestC7_onALeaseDuplicatesInAnotherProcessWaitAndReplay(t *testing.T) {
	t.Parallel()
	a, b := twoProcesses(t, leased)
	first := a.begin(post("/slow", "k", "201"))
	a.inside(t)
	duplicates := b.beginMany(20, post("/slow", "k", "201"))
	b.waiters("k", 19) // one of them asks the database for all
	for range 20 {
		if n := b.pool.Stat().AcquiredConns(); n > 1 {
			t.Errorf("%d connections are held by the process that waits, want at most one", n)
		}
		time.Sleep(5 * time.Millisecond)
	}
	a.release()
	one := <-first
	a.want(one, 201, "")
	wantReplays(t, one, duplicates)
	if n := b.runs.Load(); n != 0 {
		t.Errorf("the other process ran the handler %d times, want never", n)
	}
	a.wantRows("select count(*) from orders", 1)
}

func TestC7_onALeaseInFlightInAnotherProcessAfterTheWait(t *testing.T) {
	t.Parallel()
	a, b := twoProcesses(t, idemhttp.Route{Lease: time.Minute, Wait: 50 * time.Millisecond})
	first := a.begin(post("/slow", "k", "201"))
	a.inside(t)
	for _, d := range b.beginMany(3, post("/slow", "k", "201")) {
		b.want(<-d, 425, "in-flight")
	}
	a.release()
	a.want(<-first, 201, "")
	b.want(b.send(post("/slow", "k", "202")), 409, "key-mismatch")
	if got := b.send(post("/slow", "k", "201")); got.status != 201 || !got.replayed() {
		t.Errorf("a later retry got %d, replayed %v", got.status, got.replayed())
	}
	if n := b.runs.Load(); n != 0 {
		t.Errorf("the other process ran the handler %d times, want never", n)
	}
}

func TestC6_onALeaseAMismatchInAnotherProcessIsToldAtOnce(t *testing.T) {
	t.Parallel()
	a, b := twoProcesses(t, leased)
	first := a.begin(post("/slow", "k", "201"))
	a.inside(t)
	for range 10 {
		b.want(b.send(post("/slow", "k", "202")), 409, "key-mismatch") // a wait would be a minute
	}
	duplicate := b.begin(post("/slow", "k", "201"))
	eventually(t, "the duplicate waits", func() bool { return b.guard.Flying("guest", "k") })
	b.want(b.send(post("/slow", "k", "202")), 409, "key-mismatch") // beside one that waits, too
	a.release()
	one := <-first
	a.want(one, 201, "")
	wantReplays(t, one, []<-chan reply{duplicate})
	if n := b.runs.Load(); n != 0 {
		t.Errorf("the other process ran the handler %d times, want never", n)
	}
}

func TestC9_onALeaseOneOfAnotherProcessTakesOverWhenTheFirstFreesTheKey(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"422", "503"} {
		t.Run(status, func(t *testing.T) {
			a, b := twoProcesses(t, leased)
			first := a.begin(post("/slow", "k", status))
			a.inside(t)
			duplicates := b.beginMany(10, post("/slow", "k", status))
			b.waiters("k", 9)
			a.release()
			if got := <-first; strconv.Itoa(got.status) != status {
				t.Fatalf("the first got %d", got.status)
			}
			b.inside(t)
			b.release()
			for _, d := range duplicates {
				if got := <-d; strconv.Itoa(got.status) != status || got.body != "run 1" || got.replayed() {
					t.Errorf("a duplicate got %d %q, replayed %v", got.status, got.body, got.replayed())
				}
			}
			if n := b.runs.Load(); n != 1 {
				t.Errorf("the other process ran the handler %d times, want once for all", n)
			}
			a.wantFree()
		})
	}
}

// applyingLong serves, in both processes, a handler that applies an effect in a
// transaction of its own, stops at a gate within it, and at another one after it.
func applyingLong(t *testing.T, lease, wait time.Duration) (a, b *rig, within, after *gate) {
	url := pgtest.NewURL(t)
	a, b = rigOn(t, pgtest.Pool(t, url)), rigOn(t, pgtest.Pool(t, url))
	a.handle("/x", idemhttp.Route{Lease: lease}, func(w http.ResponseWriter, req *http.Request) {
		err := pgx.BeginFunc(req.Context(), a.pool, func(tx pgx.Tx) error {
			_, _, err := idem.Apply(req.Context(), tx, idem.Effect{Scope: "shop", Key: "early"}, func(context.Context, pgx.Tx) (int, error) { return 1, nil })
			within.pass()
			return err
		})
		after.pass()
		if err == nil {
			err = insertOrder(req)
		}
		if err != nil {
			http.Error(w, fmt.Sprint(err, context.Cause(req.Context())), http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusCreated)
	})
	b.handle("/x", idemhttp.Route{Lease: lease, Wait: wait}, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot) // it must not run
	})
	a.serve()
	b.serve()
	return a, b, newGate(t), newGate(t)
}

// While the owner has its key's row in a transaction, whoever asks for the key is
// told so as at any other time, and holds no connection while it waits.
func TestC7_onALeaseAKeyInATransactionOfItsOwnersIsInFlight(t *testing.T) {
	t.Parallel()
	a, b, within, after := applyingLong(t, time.Minute, 50*time.Millisecond)
	first := a.begin(post("/x", "k", "{}"))
	within.inside(t)
	begun := time.Now()
	b.want(b.send(post("/x", "k", "{}")), 425, "in-flight")
	t.Log(time.Since(begun))
	b.want(b.send(post("/x", "k", `{"other":1}`)), 409, "key-mismatch")
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("that took %v", took)
	}
	within.release()
	after.release()
	a.want(<-first, 201, "")
}

// A transaction that keeps renewals out costs no lease as long as it is shorter than
// that, neither while it lasts nor when it has ended.
func TestC7_onALeaseALongTransactionKeepsIt(t *testing.T) {
	t.Parallel()
	a, b, within, after := applyingLong(t, 9*time.Second, time.Minute)
	first := a.begin(post("/x", "k", "{}"))
	within.inside(t)
	duplicates := b.beginMany(3, post("/x", "k", "{}"))
	b.waiters("k", 2)
	eventually(t, "two renewals were left out", func() bool {
		var long bool
		err := b.pool.QueryRow(context.Background(), "select created_at + interval '6500 ms' < clock_timestamp() from idem.idempotency_keys").Scan(&long)
		return err == nil && long
	})
	within.release()
	after.inside(t)
	eventually(t, "the lease is renewed", func() bool {
		var live bool
		err := b.pool.QueryRow(context.Background(), "select lease_until > clock_timestamp() from idem.idempotency_keys where state = 'claimed'").Scan(&live)
		return err == nil && live
	})
	after.release()
	got := <-first
	a.want(got, 201, "")
	wantReplays(t, got, duplicates)
	a.wantRows("select count(*) from orders", 1)
}
