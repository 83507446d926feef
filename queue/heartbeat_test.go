package queue_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/idem-go/idem/internal/faultproxy"
	"github.com/idem-go/idem/queue"
)

// A lease counts from the take, however late its reply comes.
func TestHeartbeat_renewsALeaseTheFirstTimeInTime(t *testing.T) {
	t.Parallel()
	const lease = 6 * time.Second // renewed each 2 s
	for name, late := range map[string]time.Duration{"taken between two": 1200 * time.Millisecond, "taken for longer": 2100 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFloor(t)
			db, proxy := f.through(t)
			proxy.Add(faultproxy.Rule{Name: "slow", When: receives(taking), Do: faultproxy.Delay(late)})
			kind := queue.Define[job]("job", queue.Options{Lease: lease})
			f.enqueue(kind, jobs(3, "")...)
			w := queue.NewWorker(db, queue.Config{Concurrency: 4, Grace: -1})
			g := newGate()
			kind.HandleLeased(w, func(ctx context.Context, j job) error { return g.wait(ctx, j.N) })
			f.run(w)
			g.await(t, 3)
			f.untilCount(3, 1500*time.Millisecond, `select count(*) from idem.tasks as c join idem.takes as k on k.fence = c.fence
				where c.lease_until > k.taken_at + $1 and k.lease_until > k.taken_at + $1`, lease+500*time.Millisecond)
		})
	}
}

// A task whose cancellation was asked for while it waited for a free place is not started.
func TestT17_aTaskThatWaitsInTheWorkerIsCancelled(t *testing.T) {
	f := newFloor(t)
	kind := queue.Define[job]("job", queue.Options{Lease: shortLease})
	// So many that the worker keeps some beside those that run.
	f.enqueue(kind, append(jobs(3000, ""), jobs(100, "wait")...)...)
	w := queue.NewWorker(f.db, queue.Config{Concurrency: 4, Poll: 50 * time.Millisecond})
	g := newGate()
	kind.HandleLeased(w, func(ctx context.Context, j job) error {
		if j.Do == "" {
			return nil
		}
		return g.wait(ctx, j.N)
	})
	f.run(w)
	entered := make([]int, 4)
	for i := range entered {
		entered[i] = <-g.entered
	}
	const kept = `status = 'running' and convert_from(payload, 'UTF8')::json ->> 'do' = 'wait'
		and (convert_from(payload, 'UTF8')::json ->> 'n')::integer <> all ($1)`
	f.until("it keeps some", 10*time.Second, func() bool { return valueOf[int](f, "select count(*) from idem.tasks where "+kept, entered) > 0 })
	id := valueOf[int64](f, "update idem.tasks set cancel_at = clock_timestamp() where id = (select max(id) from idem.tasks where "+kept+") returning id", entered)
	for range 3 { // the reply to the first of these renewals has come when the next is made
		until := valueOf[time.Time](f, "select lease_until from idem.tasks where id = $1", id)
		f.untilCount(1, 10*time.Second, "select count(*) from idem.tasks where id = $1 and lease_until > $2", id, until)
	}
	close(g.open)
	f.untilCount(3099, 20*time.Second, "select count(*) from idem.tasks where status = 'done'")
	f.wantCount(1, "select count(*) from idem.tasks where id = $1 and status = 'cancelled'", id)
	unwanted := valueOf[int](f, "select (convert_from(payload, 'UTF8')::json ->> 'n')::integer from idem.tasks where id = $1", id)
	for len(g.entered) > 0 {
		entered = append(entered, <-g.entered)
	}
	if slices.Contains(entered, unwanted) {
		t.Errorf("%d was started", unwanted)
	}
}
