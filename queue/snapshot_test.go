package queue_test

import (
	"context"
	"flag"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/idem-go/idem/internal/pgsql/tasks"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
)

// full makes TestT21 as large as its case says.
var full = flag.Bool("full", false, "T21 with a million finished rows and 200,000 tasks under an old snapshot")

// maxBuffers is what a take of 100 tasks may read: their rows and index entries, and the
// like for its writes.
const maxBuffers = 1500

// What was taken stays in the index for as long as an old snapshot can see it. A take that
// looks behind it does not read it.
func TestT21_aTakeReadsABoundedNumberOfBuffers(t *testing.T) {
	if testing.Short() {
		t.Skip("makes many rows")
	}
	finished, passing := 100_000, 20_000
	if *full {
		finished, passing = 1_000_000, 200_000
	}
	f := newFloor(t)
	f.exec(`insert into idem.tasks (kind, payload, status, takes, attempts, fence, run_at, finished_at, expires_at)
		select 'job', '{}', 'done', 1, 1, gen_random_uuid(), clock_timestamp() - interval '1 hour', clock_timestamp(), clock_timestamp() + interval '1 day'
		from generate_series(1, $1)`, finished)
	kind := queue.Define[job]("job", queue.Options{Retention: queue.Forget})
	for left := passing; left > 0; left -= 10_000 {
		f.enqueue(kind, jobs(10_000, "")...)
	}
	old := f.oldSnapshot()
	w := queue.NewWorker(f.db, queue.Config{})
	kind.HandleLeased(w, func(context.Context, job) error { return nil })
	stop := f.run(w)
	f.untilCount(0, 5*time.Minute, "select count(*) from idem.tasks where finished_at is null")
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	f.exec("vacuum analyze idem.tasks") // which can remove nothing of what the snapshot sees
	f.enqueue(kind, jobs(200, "")...)
	ahead := f.buffersOfTake(behindAllButNewest(f))
	whole := f.buffersOfTake(time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), 0)
	t.Logf("a take of 100 reads %d buffers behind what was taken, %d from the beginning", ahead, whole)
	if ahead > maxBuffers {
		t.Errorf("a take of 100 reads %d buffers, want %d at most", ahead, maxBuffers)
	}
	if err := old.Rollback(context.Background()); err != nil {
		t.Error(err)
	}
}

// oldSnapshot is a transaction that sees what there is now.
func (f *floor) oldSnapshot() pgx.Tx {
	f.t.Helper()
	tx, err := f.pool.BeginTx(context.Background(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	if _, err := tx.Exec(context.Background(), "select count(*) from runs"); err != nil {
		f.t.Fatal(err)
	}
	return tx
}

// behindAllButNewest is the place of what was taken last.
func behindAllButNewest(f *floor) (time.Time, int64) {
	first := valueOf[int64](f, "select min(id) from idem.tasks where finished_at is null")
	return valueOf[time.Time](f, "select run_at - interval '1 microsecond' from idem.tasks where id = $1", first), first - 1
}

var buffers = regexp.MustCompile(`(?m)^  Buffers: (.*)$`)

// buffersOfTake is what a take of 100 reads and writes, behind a place. It is undone.
func (f *floor) buffersOfTake(runAt time.Time, id int64) (n int) {
	f.t.Helper()
	ctx := context.Background()
	tx, err := f.pool.Begin(ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	var priorities []int16
	var dues []time.Time
	var ids []int64
	for p := queue.MaxPriority; p >= queue.MinPriority; p-- {
		priorities, dues, ids = append(priorities, int16(p)), append(dues, runAt), append(ids, id)
	}
	rows, err := tx.Query(ctx, "explain (analyze, buffers) "+tasks.Take, queue.DefaultQueue, uuid.New(), uuid.New(),
		[]string{"job"}, []float64{30}, 100, 0, priorities, dues, ids)
	if err != nil {
		f.t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		f.t.Fatal(err)
	}
	plan := strings.Join(lines, "\n")
	m := buffers.FindStringSubmatch(plan) // of the topmost node, with all below it
	if m == nil {
		f.t.Fatalf("the plan tells of no buffers:\n%s", plan)
	}
	for _, part := range regexp.MustCompile(`(hit|read)=(\d+)`).FindAllStringSubmatch(m[1], -1) {
		count, _ := strconv.Atoi(part[2])
		n += count
	}
	if !strings.Contains(plan, "tasks_take") {
		f.t.Errorf("the take does not use its index:\n%s", plan)
	}
	return n
}
