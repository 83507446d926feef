package queue_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/faultproxy"
	"github.com/idem-go/idem/internal/pgsql/tasks"
	"github.com/idem-go/idem/internal/sqlstate"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
)

// The words by which a statement of a worker is known.
const (
	taking  = "not c.alone and c.status = 'pending'"
	undoing = "conflict (fence)"
)

// sends matches the message that runs a statement with these words in it.
func sends(words string) func(faultproxy.Message) bool {
	runs := faultproxy.Executes("with raised as")
	return func(m faultproxy.Message) bool { return runs(m) && strings.Contains(m.SQL, words) }
}

// receives matches the first row of its answer.
func receives(words string) func(faultproxy.Message) bool {
	return func(m faultproxy.Message) bool {
		return m.Direction == faultproxy.FromServer && m.Type == "DataRow" && strings.Contains(m.SQL, words)
	}
}

// lossy is a worker whose takes get lost on a proxy, and whose tasks have one attempt.
func (f *floor) lossy(t *testing.T, lease time.Duration) (*queue.Worker, *queue.Kind[job], *faultproxy.Postgres) {
	t.Helper()
	db, proxy := f.through(t)
	proxy.Add(faultproxy.Rule{Name: "cancel", When: faultproxy.Is(faultproxy.FromClient, "CancelRequest"), Times: -1, Do: faultproxy.Cut()})
	kind := queue.Define[job]("job", queue.Options{Lease: lease, MaxAttempts: 1})
	// One has its place kept for a task to be taken alone.
	w := queue.NewWorker(db, queue.Config{Concurrency: 6, Grace: -1, Poll: time.Hour, PollOnly: true})
	kind.Handle(w, runs)
	f.enqueue(kind, jobs(5, "")...)
	return w, kind, proxy
}

// wantSound fails unless the check finds nothing.
func (f *floor) wantSound() {
	f.t.Helper()
	for v, err := range idem.Check(f.t.Context(), f.db) {
		f.t.Errorf("the check finds %v (%v)", v, err)
	}
}

func TestTake_whoseReplyIsLostIsGivenBackAtOnce(t *testing.T) {
	f := newFloor(t)
	w, _, proxy := f.lossy(t, time.Minute)
	lost := proxy.Add(faultproxy.Rule{Name: "reply", When: receives(taking), Do: faultproxy.Cut()})
	f.run(w)
	<-lost.Reached()
	f.untilCount(5, 20*time.Second, "select count(*) from idem.tasks where status = 'done' and attempts = 1 and takes = 2")
	f.wantCount(5, "select count(*) from runs")
}

// A take that arrives after its worker has given it up takes nothing.
func TestTake_thatIsLateTakesNothing(t *testing.T) {
	f := newFloor(t)
	w, _, proxy := f.lossy(t, shortLease)
	first := 0
	late := proxy.Add(faultproxy.Rule{Name: "late", Do: faultproxy.Late(), When: func(m faultproxy.Message) bool {
		if !sends(taking)(m) || first != 0 {
			return false
		}
		first = m.Conn
		return true
	}})
	next := proxy.Add(faultproxy.Rule{Name: "next", Do: faultproxy.Hold(), When: func(m faultproxy.Message) bool {
		return sends(taking)(m) && first != 0 && m.Conn != first
	}})
	f.run(w)
	<-late.Reached()
	<-next.Reached()
	pid := valueOf[int](f, `select pid from pg_stat_activity where datname = current_database() and position($1 in query) > 0 and pid <> pg_backend_pid()
		order by state_change limit 1`, taking)
	late.Release()
	f.untilCount(0, 20*time.Second, "select count(*) from pg_stat_activity where pid = $1", pid)
	f.wantCount(5, "select count(*) from idem.tasks where status = 'pending' and takes = 0")
	f.wantSound()
	next.Release()
	f.untilCount(5, 20*time.Second, "select count(*) from idem.tasks where status = 'done' and attempts = 1")
	f.wantCount(5, "select count(*) from runs")
	f.wantCount(1, "select count(*) from idem.takes where started = 0 and tasks = '{0}'") // what kept it out
	f.exec("update idem.takes set lease_until = clock_timestamp()")
	f.untilCount(0, 20*time.Second, "select count(*) from idem.takes")
}

// A task that somebody holds while its take is given back is not forgotten.
func TestTake_whoseReplyIsLostIsGivenBackInParts(t *testing.T) {
	f := newFloor(t)
	w, _, proxy := f.lossy(t, time.Minute)
	proxy.Add(faultproxy.Rule{Name: "reply", When: receives(taking), Do: faultproxy.Cut()})
	undo := proxy.Add(faultproxy.Rule{Name: "undo", When: sends(undoing), Do: faultproxy.Hold()})
	f.run(w)
	<-undo.Reached()
	tx, err := f.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), "select from idem.tasks where id = 3 for update"); err != nil {
		t.Fatal(err)
	}
	undo.Release()
	f.untilCount(4, 20*time.Second, "select count(*) from idem.tasks where status = 'done'")
	f.wantCount(1, "select count(*) from idem.takes where started = 0 and 3 = any (tasks)") // it would cost no attempt
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.untilCount(5, 20*time.Second, "select count(*) from idem.tasks where status = 'done' and attempts = 1")
	f.wantCount(5, "select count(*) from runs")
}

func TestTake_whoseReplyIsLostInTheDrainIsGivenBack(t *testing.T) {
	f := newFloor(t)
	w, _, proxy := f.lossy(t, time.Minute)
	reply := proxy.Add(faultproxy.Rule{Name: "reply", When: receives(taking), Do: faultproxy.Hold()})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	<-reply.Reached()
	cancel()
	proxy.CutAll()
	wantEnd(t, ended, nil)
	f.wantCount(5, "select count(*) from idem.tasks where status = 'pending' and attempts = 0 and takes = 1")
	f.wantSound()
}

// A take that the server refuses has taken nothing, and leaves nothing behind.
func TestTake_thatIsRefusedIsMadeAgain(t *testing.T) {
	f := newFloor(t)
	w, _, _ := f.lossy(t, time.Minute)
	f.exec("alter table idem.takes add constraint never check (false)")
	f.run(w)
	f.until("it is told of twice", 20*time.Second, func() bool { return f.troubled("never") >= 2 })
	f.exec("alter table idem.takes drop constraint never")
	f.untilCount(5, 20*time.Second, "select count(*) from idem.tasks where status = 'done' and takes = 1")
	f.wantCount(0, "select count(*) from idem.takes where tasks = '{0}'")
}

// What is asked to give a take back that is still under way does not wait for it, and says
// so if it has come meanwhile.
func TestTake_thatIsUnderWayIsGivenBackLater(t *testing.T) {
	f := newFloor(t)
	_, _, _ = f.lossy(t, time.Minute)
	fence := uuid.New()
	left, err := f.undoDuring(fence, func(pgx.Tx) {})
	if sqlstate.Code(err) != sqlstate.LockNotAvailable {
		t.Fatalf("left: %v, %v; want 55P03", left, err)
	}
	for range 10 { // until it comes in time
		fence = uuid.New()
		left, err = f.undoDuring(fence, func(tx pgx.Tx) {
			f.untilCount(1, 20*time.Second, "select least(count(*), 1) from pg_stat_activity where wait_event_type = 'Lock' and position($1 in query) > 0", undoing)
			if err := tx.Commit(t.Context()); err != nil {
				t.Error(err)
			}
		})
		if err == nil {
			break
		}
		f.exec(tasks.Undo, "default", fence, uuid.New())
	}
	if err != nil || !left {
		t.Errorf("left: %v, %v; want true", left, err)
	}
	f.wantCount(5, "select count(*) from idem.tasks where status = 'running' and fence = $1", fence)
	if left := valueOf[bool](f, tasks.Undo, "default", fence, uuid.New()); left {
		t.Error("something is left")
	}
	f.wantCount(5, "select count(*) from idem.tasks where status = 'pending' and attempts = 0")
	f.wantSound()
}

// undoDuring gives a take back while the transaction that takes is open. It calls do
// meanwhile, and rolls it back in the end.
func (f *floor) undoDuring(fence uuid.UUID, do func(pgx.Tx)) (left bool, err error) {
	f.t.Helper()
	tx, err := f.pool.Begin(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = tx.Exec(f.t.Context(), tasks.Take, "default", fence, uuid.New(), []string{"job"}, []float64{60}, 5, 5,
		[]int16{0}, []time.Time{time.Unix(0, 0)}, []int64{0})
	if err != nil {
		f.t.Fatal(err)
	}
	undone := make(chan error, 1)
	go func() {
		undone <- f.pool.QueryRow(context.Background(), tasks.Undo, "default", fence, uuid.New()).Scan(&left)
	}()
	do(tx)
	select {
	case err = <-undone:
	case <-time.After(20 * time.Second):
		err = errors.New("it waits")
	}
	return left, err
}

// Whatever has begun before what was taken last is found all the same.
func TestTake_findsWhatIsCommittedLate(t *testing.T) {
	f := newFloor(t)
	kind := queue.Define[job]("job", queue.Options{})
	tx, err := f.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := kind.Enqueue(t.Context(), tx, queue.Unkeyed, job{N: 1}); err != nil {
		t.Fatal(err)
	}
	w := f.worker()
	kind.Handle(w, runs)
	f.run(w)
	for n := range 3 {
		f.enqueue(kind, job{N: n + 2})
		f.untilCount(n+1, 10*time.Second, "select count(*) from idem.tasks where status = 'done'")
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.untilCount(4, 10*time.Second, "select count(*) from idem.tasks where status = 'done'")
}
