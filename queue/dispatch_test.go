package queue

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgsql/tasks"
	"github.com/idem-go/idem/internal/pgtest"
)

// desk is a lane whose events are the test's, with a handler that waits to be told.
type desk struct {
	*lane
	t    *testing.T
	open chan struct{}
}

func newDesk(t *testing.T, slots, n int) *desk {
	t.Helper()
	db, err := idem.Open(t.Context(), pgtest.New(t), idem.Config{})
	if err != nil {
		t.Fatal(err)
	}
	kind := Define[int]("kind", Options{})
	for i := range n {
		if _, err := kind.Enqueue(t.Context(), db.Pool(), Unkeyed, i); err != nil {
			t.Fatal(err)
		}
	}
	w, open := NewWorker(db, Config{Concurrency: slots}), make(chan struct{})
	kind.HandleLeased(w, func(context.Context, int) error {
		<-open
		return ErrDraining // so that it is given back
	})
	if err := w.start(); err != nil {
		t.Fatal(err)
	}
	d := &desk{w.lanes[DefaultQueue], t, open}
	d.base, d.clocks = context.Background(), newClocks()
	t.Cleanup(d.clocks.stop)
	t.Cleanup(func() {
		close(open)
		for len(d.running) > 0 {
			d.end(<-d.ended)
		}
	})
	return d
}

// keeps takes n tasks, of which none is to be started at once, and keeps them.
func (d *desk) keeps(n int) *take {
	d.t.Helper()
	k := &take{fence: uuid.New(), queue: d.queue}
	got := d.takes(d.t.Context(), tasks.Take, k, n, fromFirst(), nil)
	if got.err != nil || len(got.batch) != n {
		d.t.Fatalf("took %d tasks (%v), want %d", len(got.batch), got.err, n)
	}
	d.w.beat.hold(got.batch, got.age)
	d.buffer = append(d.buffer, got.batch...)
	return k
}

// exec runs a statement.
func (d *desk) exec(sql string, args ...any) {
	d.t.Helper()
	if _, err := d.w.db.Pool().Exec(d.t.Context(), sql, args...); err != nil {
		d.t.Fatal(err)
	}
}

// want fails unless so many of the take's tasks run, as the lane and the database see it.
func (d *desk) want(k *take, n int) {
	d.t.Helper()
	running, noted, held := 0, 0, 0
	for a := range d.running {
		if a.task.take == k {
			running++
		}
	}
	err := d.w.db.Pool().QueryRow(d.t.Context(), `select coalesce((select started from idem.takes where fence = $1), 0),
		(select count(*) from idem.tasks where fence = $1)`, k.fence).Scan(&noted, &held)
	if err != nil || running != n || k.begun != n || k.started != noted || noted < n || held < n {
		d.t.Errorf("%d run, of %d begun, %d noted here and %d there, %d held (%v); want %d", running, k.begun, k.started, noted, held, err, n)
	}
}

// Of two takes one was ended by others: the tasks of the other start all the same.
func TestDispatch_givesBackOnlyWhatOthersHaveEnded(t *testing.T) {
	d := newDesk(t, 8, 6)
	theirs, mine := d.keeps(3), d.keeps(3)
	d.exec("update idem.takes set lease_until = clock_timestamp() - interval '1 hour' where fence = $1", theirs.fence)
	d.exec("update idem.tasks set lease_until = clock_timestamp() - interval '1 hour' where fence = $1", theirs.fence)
	d.exec(tasks.Rescue, d.queue, 10, "it died", uuid.New())
	d.slots = 5 // one of theirs does not fit
	d.dispatch(t.Context())
	d.want(theirs, 0)
	d.want(mine, 3)
	if len(d.buffer) != 0 || !d.more {
		t.Errorf("%d are kept, looks for more: %v; want 0, true", len(d.buffer), d.more)
	}
}

// A note whose reply was lost stands when fewer are started the next time.
func TestDispatch_startsFewerThanWereNoted(t *testing.T) {
	d := newDesk(t, 8, 3)
	k := d.keeps(3)
	d.exec(tasks.Start, d.queue, []string{k.fence.String()}, []int32{3})
	d.slots = 2
	d.dispatch(t.Context())
	d.want(k, 2)
	if k.started != 3 || len(d.buffer) != 1 {
		t.Errorf("%d may have been started, %d are kept; want 3, 1", k.started, len(d.buffer))
	}
}
