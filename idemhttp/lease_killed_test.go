package idemhttp_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem/idemhttp"
	"github.com/idem-go/idem/internal/faultproxy"
	"github.com/idem-go/idem/internal/pgtest"
)

// onASecond puts the route of a child on the shortest lease.
var onASecond = childLease + "=" + second.String()

// Nothing of a process that was killed tells that it was: the retry has to wait until
// its lease is over, and never longer.
func TestQ4_onALeaseKilledBeforeCommitLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, point := range []string{pointEntered, pointInserted} {
		for does, wait := range map[string]time.Duration{"waits": 20 * time.Second, "is told": -1} {
			t.Run(fmt.Sprint(point, ", the retry ", does), func(t *testing.T) {
				t.Parallel()
				url := pgtest.NewURL(t)
				r := rigOn(t, pgtest.Pool(t, url))
				var runs atomic.Int64
				r.handle("/orders", idemhttp.Route{Lease: second, Wait: wait}, createOrder(&runs))
				r.serve()
				killedAt(t, url, point, func() {
					r.wantRows("select count(*) from orders", 0)
					r.wantState("k", "claimed")
				}, onASecond)
				var until time.Time
				err := r.pool.QueryRow(t.Context(), "select lease_until from idem.idempotency_keys where state = 'claimed'").Scan(&until)
				if err != nil {
					t.Fatal(err)
				}
				retry := r.send(post("/orders", "k", body))
				for told := time.Now(); wait < 0 && retry.problem() == "in-flight" && time.Since(told) < second+takeOverSlack; {
					retry = r.send(post("/orders", "k", body))
				}
				r.want(retry, 201, "")
				if retry.replayed() {
					t.Error("the retry says that it is a replay; nothing was there to replay")
				}
				again := r.send(post("/orders", "k", body))
				if again.body != retry.body || !again.replayed() {
					t.Errorf("the repeat got %d %q, replayed %v; want the retry's %q", again.status, again.body, again.replayed(), retry.body)
				}
				r.wantRows("select count(*) from orders", 1)
				r.wantRows("select count(*) from idem.idempotency_keys where created_at >= $1", 1, until)
			})
		}
	}
}

func TestQ5_onALeaseKilledAfterCommitKeepsTheAnswer(t *testing.T) {
	t.Parallel()
	killedAfterCommit(t, onASecond)
}

// While the server works on the COMMIT of a process that was killed, the key is in
// flight, also when the lease is over.
func TestQ5_onALeaseKilledWithinCommitIsLearntByTheRetry(t *testing.T) {
	t.Parallel()
	url := pgtest.NewURL(t)
	r := rigOn(t, pgtest.Pool(t, url))
	var runs atomic.Int64
	r.handle("/orders", idemhttp.Route{Lease: second, Wait: -1}, createOrder(&runs))
	r.serve()
	release := r.killedWithinCommit(url, onASecond)
	eventually(t, "the lease is over", func() bool {
		var over bool
		err := r.pool.QueryRow(context.Background(), "select lease_until < clock_timestamp() from idem.idempotency_keys").Scan(&over)
		return err == nil && over
	})
	r.want(r.send(post("/orders", "k", body)), 425, "in-flight")
	release()
	r.collects(url, `{"id":1,"customer_id":123,"amount":1500}`+"\n", onASecond)
	if n := runs.Load(); n != 0 {
		t.Errorf("the other process ran the handler %d times", n)
	}
}

// The stated limits of a take-over from an owner on a lease: its lease, and in its
// final transaction, of which the server sees no end, those of one in the transaction.
const (
	takeOverSlack = 2 * time.Second
	leaseEnd      = second + takeOverSlack
)

// leasedOwners are the ways to lose one on a lease, of a second.
var leasedOwners = map[string]loss{
	"its process is killed": {beginKilled(pointEntered, onASecond), leaseEnd, "none"},
	"its process is frozen": {beginFrozen(pointEntered, onASecond, childLimit+"=1m"), leaseEnd, "425"},
	"all of its database's are dropped": {
		beginSevered(pointEntered, idemhttp.Route{Lease: second, Limit: 2 * ownerLimit}), leaseEnd, "503"},
	"all of them, for a while":                    {beginAway, leaseEnd, "425"},
	"its process is killed, having written":       {beginKilled(pointInserted, onASecond), leaseEnd, "none"},
	"its process is frozen, having written":       {beginFrozen(pointInserted, onASecond), unseenEnd, "425"},
	"its transaction's packets are dropped":       {beginDropped(ownedOnALease), unseenEnd, ""},
	"all of its database's are dropped, as above": {beginSevered(pointInserted, ownedOnALease), unseenEnd, ""},
}

var ownedOnALease = idemhttp.Route{Lease: second, Limit: ownerLimit}

func TestC5_D8_onALeaseAnotherProcessTakesOver(t *testing.T) {
	long(t)
	t.Parallel()
	takeOvers(t, leasedOwners, idemhttp.Route{Lease: second, Wait: time.Minute})
}

// beginAway loses all that the owner's process has with the database, until it wakes.
func beginAway(t *testing.T, url string) owner {
	proxy := newProxy(t, url)
	_, o := beginHere(t, proxy.URL(), pointEntered, idemhttp.Route{Lease: second, Limit: time.Minute})
	goOn := o.wake
	var away *faultproxy.Armed
	o.lose = func() { away = proxy.Add(faultproxy.Rule{Times: -1, Do: faultproxy.Drop()}) }
	o.wake = func() {
		away.Disarm()
		goOn()
	}
	return o
}
