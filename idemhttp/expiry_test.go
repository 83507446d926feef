package idemhttp_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/pgsql/keys"
	"github.com/jackc/pgx/v5"
)

// levels are the isolation levels that a route may choose.
var levels = []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable}

// age makes a guest's key older by d, as if it had been answered so long ago.
func (r *rig) age(key string, d time.Duration) {
	r.t.Helper()
	tag, err := r.pool.Exec(context.Background(), `update idem.idempotency_keys
		set    created_at = created_at - $2::interval, expires_at = expires_at - $2::interval,
		       tombstone_until = tombstone_until - $2::interval
		where  scope = 'guest' and key = $1`, key, d)
	if err != nil || tag.RowsAffected() != 1 {
		r.t.Fatalf("aging %q: %v rows, %v", key, tag.RowsAffected(), err)
	}
}

// sweep sweeps, if asked to, and wants to have touched so many rows.
func (r *rig) sweep(asked bool, deleted, stripped int64) {
	r.t.Helper()
	if !asked {
		return
	}
	got, err := idem.Sweep(context.Background(), r.db)
	if want := (idem.Swept{Deleted: deleted, Stripped: stripped}); err != nil || got != want {
		r.t.Fatalf("the sweep did %+v, %v; want %+v", got, err, want)
	}
}

// ordersRig guards POST /orders at an isolation level.
func ordersRig(t *testing.T, route idemhttp.Route) (*rig, *atomic.Int64) {
	r := newRig(t)
	runs := new(atomic.Int64)
	r.handle("/orders", route, createOrder(runs))
	r.serve()
	return r, runs
}

func TestQ6_replayedUntilItsTimeIsOverAndThenRunsAsNew(t *testing.T) {
	for _, level := range levels {
		for _, swept := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/swept=%v", level, swept), func(t *testing.T) {
				r, _ := ordersRig(t, idemhttp.Route{TTL: time.Hour, TxOptions: pgx.TxOptions{IsoLevel: level}})
				first := r.send(post("/orders", "k", body))
				r.age("k", 59*time.Minute)
				r.sweep(swept, 0, 0)
				if again := r.send(post("/orders", "k", body)); again.body != first.body || !again.replayed() {
					t.Fatalf("after 59 minutes of an hour: %d %q, replayed %v", again.status, again.body, again.replayed())
				}
				r.age("k", 2*time.Minute)
				r.sweep(swept, 1, 0)
				anew := r.send(post("/orders", "k", body))
				r.want(anew, 201, "")
				if anew.replayed() || anew.body == first.body {
					t.Fatalf("after its time the first answer came again: %q", anew.body)
				}
				if again := r.send(post("/orders", "k", body)); again.body != anew.body || !again.replayed() {
					t.Fatalf("the new answer is not replayed: %d %q", again.status, again.body)
				}
				r.wantRows("select count(*) from orders", 2)
			})
		}
	}
}

func TestQ6_afterItsTimeAnotherBodyIsWelcome(t *testing.T) {
	r, _ := ordersRig(t, idemhttp.Route{TTL: time.Hour})
	r.want(r.send(post("/orders", "k", body)), 201, "")
	r.age("k", 61*time.Minute)
	r.want(r.send(post("/orders", "k", `{"customer_id":9,"amount":9}`)), 201, "")
	r.wantRows("select count(*) from orders", 2)
}

func TestQ6_tombstoneAnswersExpired(t *testing.T) {
	for _, level := range levels {
		for _, swept := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/swept=%v", level, swept), func(t *testing.T) {
				r, runs := ordersRig(t, idemhttp.Route{TTL: time.Hour, Tombstone: 24 * time.Hour, TxOptions: pgx.TxOptions{IsoLevel: level}})
				r.want(r.send(post("/orders", "k", body)), 201, "")
				r.age("k", 61*time.Minute)
				r.sweep(swept, 0, 1)
				late := r.send(post("/orders", "k", body))
				r.want(late, 409, "answer-expired")
				if !strings.Contains(late.body, `"safe_new_key":false`) {
					t.Errorf("the problem allows a new key: %s", late.body)
				}
				r.want(r.send(post("/orders", "k", `{"customer_id":9,"amount":9}`)), 409, "key-mismatch")
				if n := runs.Load(); n != 1 {
					t.Errorf("the handler ran %d times, want once", n)
				}
				r.age("k", 24*time.Hour)
				r.sweep(swept, 1, 0)
				r.want(r.send(post("/orders", "k", body)), 201, "")
				r.wantRows("select count(*) from orders", 2)
			})
		}
	}
}

// What a handler answers after its key's time is over is remembered or freed as
// ever; the old row comes back in neither case.
func TestQ6_afterItsTimeARefusalIsRememberedToo(t *testing.T) {
	r := newRig(t)
	var runs atomic.Int64
	status := http.StatusCreated
	r.handle("/orders", idemhttp.Route{TTL: time.Hour}, func(w http.ResponseWriter, _ *http.Request) {
		runs.Add(1)
		w.WriteHeader(status)
	})
	r.serve()
	r.want(r.send(post("/orders", "k", body)), 201, "")
	r.age("k", 61*time.Minute)
	for _, status = range []int{422, 503, 409} { // two that free the key, one that is remembered
		got := r.send(post("/orders", "k", body))
		r.want(got, status, "")
		if got.replayed() {
			t.Errorf("%d is a replay", status)
		}
	}
	status = http.StatusCreated
	if again := r.send(post("/orders", "k", body)); again.status != 409 || !again.replayed() {
		t.Errorf("the refusal is not replayed: %d", again.status)
	}
	if n := runs.Load(); n != 4 {
		t.Errorf("the handler ran %d times, want 4", n)
	}
	r.wantRows("select count(*) from idem.idempotency_keys where response_status = 409", 1)
}

// A sweep that deletes the row while a claim is about to: whichever way the
// sweep ends, the request runs as new, once.
func TestQ6_sweptUnderTheClaim(t *testing.T) {
	for _, level := range levels {
		for _, commits := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/commits=%v", level, commits), func(t *testing.T) {
				r, runs := ordersRig(t, idemhttp.Route{TTL: time.Hour, TxOptions: pgx.TxOptions{IsoLevel: level}})
				r.want(r.send(post("/orders", "k", body)), 201, "")
				r.age("k", 61*time.Minute)
				sweep, err := r.pool.Begin(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = sweep.Rollback(context.Background()) }()
				if tag, err := sweep.Exec(t.Context(), keys.Sweep, 1000); err != nil || tag.RowsAffected() != 1 {
					t.Fatalf("the sweep deleted %d rows, %v", tag.RowsAffected(), err)
				}
				late := make(chan reply, 1)
				go func() { late <- r.send(post("/orders", "k", body)) }()
				r.eventuallyBlocked(1)
				end := sweep.Rollback
				if commits {
					end = sweep.Commit
				}
				if err := end(t.Context()); err != nil {
					t.Fatal(err)
				}
				got := <-late
				r.want(got, 201, "")
				if got.replayed() || runs.Load() != 2 {
					t.Errorf("replayed %v, the handler ran %d times; want a second run", got.replayed(), runs.Load())
				}
				r.wantRows("select count(*) from orders", 2)
			})
		}
	}
}

func TestQ6_sweepLeavesAKeyThatIsBeingClaimed(t *testing.T) {
	r := newRig(t)
	var runs atomic.Int64
	create, running, release := createOrder(&runs), make(chan struct{}), make(chan struct{})
	r.handle("/orders", idemhttp.Route{TTL: time.Hour}, func(w http.ResponseWriter, req *http.Request) {
		create(w, req)
		if runs.Load() == 2 {
			close(running)
			<-release
		}
	})
	r.serve()
	end := sync.OnceFunc(func() { close(release) })
	t.Cleanup(end)
	r.want(r.send(post("/orders", "k", body)), 201, "")
	r.age("k", 61*time.Minute)
	anew := make(chan reply, 1)
	go func() { anew <- r.send(post("/orders", "k", body)) }()
	<-running
	r.sweep(true, 0, 0) // and does not wait for it
	end()
	got := <-anew
	r.want(got, 201, "")
	r.sweep(true, 0, 0)
	if again := r.send(post("/orders", "k", body)); again.body != got.body || !again.replayed() {
		t.Errorf("the new answer is not replayed: %d %q", again.status, again.body)
	}
	r.wantRows("select count(*) from orders", 2)
}

func TestQ6_requestsAmongSweepersRunOnceAndNeverFail(t *testing.T) {
	r, runs := ordersRig(t, idemhttp.Route{TTL: time.Hour})
	s := rigOn(t, r.pool) // a second process
	s.handle("/orders", idemhttp.Route{TTL: time.Hour}, createOrder(runs))
	s.serve()
	r.want(r.send(post("/orders", "k", body)), 201, "")
	for round := range 10 {
		r.age("k", 61*time.Minute)
		swept := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := idem.Sweep(context.Background(), r.db)
				swept <- err
			}()
		}
		others := make(chan []reply, 1)
		go func() { others <- s.together(4, post("/orders", "k", body)) }()
		for _, got := range append(r.together(4, post("/orders", "k", body)), <-others...) {
			r.want(got, 201, "")
		}
		for range 2 {
			if err := <-swept; err != nil {
				t.Fatalf("a sweep failed: %v", err)
			}
		}
		r.wantRows("select count(*) from orders", round+2)
	}
}

func TestQ7_noHeaderSaysHowToMakeAKey(t *testing.T) {
	r, runs := ordersRig(t, idemhttp.Route{})
	got := r.send(post("/orders", "", body))
	r.want(got, 400, "key-missing")
	for _, want := range []string{"Make a random key once per intent", "UUID", "Idempotency-Key header", "every retry", `"safe_new_key":true`, `"retryable":false`} {
		if !strings.Contains(got.body, want) {
			t.Errorf("the problem does not say %q: %s", want, got.body)
		}
	}
	if runs.Load() != 0 {
		t.Error("the handler ran")
	}
	r.wantRows("select count(*) from idem.idempotency_keys", 0)
}
