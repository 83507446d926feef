package queue_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
)

func TestT10_threeProcessesDoEachOfTenThousandTasksOnce(t *testing.T) {
	f := newFloor(t)
	f.exec("alter table runs add primary key (n)") // a second time would be an error
	o := orders{URL: f.url, Concurrency: 34, Lease: 30 * time.Second}
	const n = 10_000
	f.enqueue(o.kind(), jobs(n, "")...)
	var crew []*process
	for range 3 {
		crew = append(crew, startProcess(t, o))
	}
	f.untilCount(n, time.Minute, "select count(*) from idem.tasks where status = 'done'")
	done := 0
	for i, p := range crew {
		p.stop()
		mine := p.says("ended done ")
		if done += mine; mine == 0 || mine != p.says("ended ") {
			t.Errorf("process %d has done %d tasks, and ended %d attempts; want some, and the same", i, mine, p.says("ended "))
		}
	}
	if done != n {
		t.Errorf("the processes tell of %d tasks, want %d", done, n)
	}
	f.wantCount(n, "select count(*) from runs")
	f.wantCount(n, "select count(*) from idem.tasks where attempts = 1 and takes = 1")
	f.wantCount(0, "select count(*) from idem.takes")
}

func TestT18_aKindThatNobodyHandlesIsNeverTaken(t *testing.T) {
	f := newFloor(t)
	mine := queue.Define[job]("mine", queue.Options{})
	other := queue.Define[job]("other", queue.Options{Priority: 5})
	f.enqueue(other, jobs(3, "")...)
	f.enqueue(mine, jobs(3, "")...)
	w := f.worker()
	mine.Handle(w, runs)
	f.run(w)
	f.untilCount(3, 10*time.Second, "select count(*) from idem.tasks where status = 'done'")
	f.enqueue(mine, jobs(1, "")...) // and once more, behind them
	f.untilCount(4, 10*time.Second, "select count(*) from idem.tasks where status = 'done'")
	f.wantCount(3, "select count(*) from idem.tasks where kind = 'other' and status = 'pending' and takes = 0")
}

func TestT18_aPayloadThatDoesNotDecodeFailsAtOnce(t *testing.T) {
	f := newFloor(t)
	f.exec(`insert into idem.tasks (kind, payload) values ('job', '{"n": "one"}'), ('job', '\x00ff')`)
	kind := queue.Define[job]("job", queue.Options{})
	w := f.worker()
	kind.Handle(w, func(context.Context, pgx.Tx, job) error {
		t.Error("the handler has run")
		return nil
	})
	f.run(w)
	f.untilCount(2, 10*time.Second, "select count(*) from idem.tasks where status = 'failed' and attempts = 1")
	f.wantCount(2, "select count(*) from idem.tasks where last_error like '%payload%'")
	f.until("both are told of", time.Second, func() bool { return f.told(idem.TaskFailed) == 2 })
}

func TestT23_prioritiesAndDueTimesAreKept(t *testing.T) {
	f := newFloor(t)
	kind := queue.Define[job]("job", queue.Options{})
	var all []queue.Task[job]
	var want []int
	for n := range 60 { // in the order in which they are to run, enqueued in another
		all = append(all, queue.Task[job]{Key: queue.Unkeyed, Payload: job{N: n}, Priority: priority(2 - n/20)})
		want = append(want, n)
	}
	all = append(all, queue.Task[job]{Key: queue.Unkeyed, Payload: job{N: -1}, Priority: priority(5), Delay: time.Hour})
	slices.Reverse(all[:30])
	if _, err := kind.EnqueueMany(t.Context(), f.pool, all...); err != nil {
		t.Fatal(err)
	}
	f.exec(`update idem.tasks set run_at = clock_timestamp() - make_interval(mins => 60 - (convert_from(payload, 'UTF8')::json ->> 'n')::integer)
		where priority < 5`)
	w := queue.NewWorker(f.db, queue.Config{Concurrency: 1, Poll: 50 * time.Millisecond})
	var mu sync.Mutex
	var got []int
	kind.Handle(w, func(_ context.Context, _ pgx.Tx, j job) error {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, j.N)
		return nil
	})
	stop := f.run(w)
	f.untilCount(60, 10*time.Second, "select count(*) from idem.tasks where status = 'done'")
	if err := stop(); err != nil {
		t.Error(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("they ran as %v, want by priority and due time", got)
	}
}

func TestT23_oneQueuesFloodDoesNotStopAnother(t *testing.T) {
	f := newFloor(t)
	flood := queue.Define[job]("flood", queue.Options{Queue: "flood", Priority: 5})
	calm := queue.Define[job]("calm", queue.Options{Queue: "calm", Priority: -5})
	f.enqueue(flood, jobs(2000, "")...)
	w := queue.NewWorker(f.db, queue.Config{Poll: 50 * time.Millisecond, Queues: map[string]int{"flood": 2}, Grace: -1})
	g := newGate()
	flood.HandleLeased(w, func(ctx context.Context, j job) error { return g.wait(ctx, j.N) })
	calm.Handle(w, runs)
	f.run(w)
	g.await(t, 2)
	f.enqueue(calm, jobs(20, "")...)
	f.untilCount(20, 5*time.Second, "select count(*) from idem.tasks where queue = 'calm' and status = 'done'")
	f.wantCount(0, "select count(*) from idem.tasks where queue = 'flood' and status = 'done'")
}

func TestPause_takesNothingUntilItIsResumed(t *testing.T) {
	f := newFloor(t)
	kind, other := queue.Define[job]("job", queue.Options{Queue: "q"}), queue.Define[job]("other", queue.Options{})
	w := f.worker()
	g := newGate()
	kind.HandleLeased(w, func(ctx context.Context, j job) error { return g.wait(ctx, j.N) })
	other.Handle(w, runs)
	f.run(w)
	f.enqueue(kind, job{N: 1})
	g.await(t, 1)
	for i, want := range []bool{true, false} {
		if paused, err := queue.Pause(t.Context(), f.db, "q"); err != nil || paused != want {
			t.Fatalf("pause %d: %v, %v; want %v", i, paused, err, want)
		}
	}
	f.enqueue(kind, jobs(10, "")...)
	f.enqueue(other, jobs(10, "")...)
	close(g.open) // what runs goes on
	f.untilCount(11, 10*time.Second, "select count(*) from idem.tasks where status = 'done'")
	f.wantCount(10, "select count(*) from idem.tasks where queue = 'q' and status = 'pending' and takes = 0")
	for i, want := range []bool{true, false} {
		if resumed, err := queue.Resume(t.Context(), f.db, "q"); err != nil || resumed != want {
			t.Fatalf("resume %d: %v, %v; want %v", i, resumed, err, want)
		}
	}
	f.untilCount(21, 10*time.Second, "select count(*) from idem.tasks where status = 'done'")
}

func priority(p int) *int { return &p }
