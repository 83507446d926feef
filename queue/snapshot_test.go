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
	"github.com/idem-go/idem/internal/pgsql/admin"
	"github.com/idem-go/idem/internal/pgsql/tasks"
	sqltx "github.com/idem-go/idem/internal/pgsql/tx"
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
	runAt, id := behindAllButNewest(f)
	ahead := f.buffersOfTake(100, runAt, id)
	whole := f.buffersOfTake(100, time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), 0)
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
func behindAllButNewest(f *floor) (runAt time.Time, id int64) {
	first := valueOf[int64](f, "select min(id) from idem.tasks where finished_at is null")
	return valueOf[time.Time](f, "select run_at - interval '1 microsecond' from idem.tasks where id = $1", first), first - 1
}

var buffers = regexp.MustCompile(`(?m)^  Buffers: (.*)$`)

// buffersOfTake is what a take of limit reads and writes, behind a place. It is undone.
func (f *floor) buffersOfTake(limit int, runAt time.Time, id int64) int {
	f.t.Helper()
	var priorities []int16
	var dues []time.Time
	var ids []int64
	for p := queue.MaxPriority; p >= queue.MinPriority; p-- {
		priorities, dues, ids = append(priorities, int16(p)), append(dues, runAt), append(ids, id)
	}
	n, plan := f.buffersOf(tasks.Take, queue.DefaultQueue, uuid.New(), uuid.New(), []string{"job"}, []float64{30}, limit, 0, priorities, dues, ids)
	if !strings.Contains(plan, " Index Scan using tasks_take ") {
		f.t.Errorf("the take does not read its index in order:\n%s", plan)
	}
	return n
}

// buffersOf is what a statement reads and writes, and its plan. It is undone.
func (f *floor) buffersOf(sql string, args ...any) (n int, plan string) {
	f.t.Helper()
	ctx := context.Background()
	tx, err := f.pool.Begin(ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if sql == tasks.Take { // as the worker does
		if _, err := tx.Exec(ctx, sqltx.ByIndex); err != nil {
			f.t.Fatal(err)
		}
	}
	return f.buffersIn(tx, sql, args...)
}

// buffersIn is what a statement reads and writes on a connection, and its plan.
func (f *floor) buffersIn(db interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, sql string, args ...any) (n int, plan string) {
	f.t.Helper()
	rows, err := db.Query(context.Background(), "explain (analyze, buffers) "+sql, args...)
	if err != nil {
		f.t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		f.t.Fatal(err)
	}
	plan = strings.Join(lines, "\n")
	m := buffers.FindStringSubmatch(plan) // of the topmost node, with all below it
	if m == nil {
		f.t.Fatalf("the plan tells of no buffers:\n%s", plan)
	}
	for _, part := range regexp.MustCompile(`(hit|read)=(\d+)`).FindAllStringSubmatch(m[1], -1) {
		count, _ := strconv.Atoi(part[2])
		n += count
	}
	return n, plan
}

// What is looked for by an id or a key is found by it, however many tasks there are and
// whatever the planner believes of them: that it knows nothing, or that there are none.
func TestT21_noStatementReadsAWholeQueueThatThePlannerDoesNotKnow(t *testing.T) {
	if testing.Short() {
		t.Skip("makes many rows")
	}
	for name, analyzed := range map[string]bool{"a table of which nothing is known": false, "a queue that was not there": true} {
		t.Run(name, func(t *testing.T) {
			f := newFloor(t)
			f.exec("alter table idem.tasks set (autovacuum_enabled = false)")
			if analyzed {
				f.exec("insert into idem.tasks (kind, payload) select 'job', '{}' from generate_series(1, 100)")
				f.exec("analyze idem.tasks")
			}
			f.exec(remembered, 100_000)
			f.exec("update idem.tasks set status = 'failed', last_error = 'e' where task_key in (select 'kept:' || i from generate_series(1, 20) as i)")
			f.exec(takenBy, "ended", "done", 400)
			f.exec(takenBy, "dead", "running", 400)
			keys := valueOf[[]string](f, "select array_agg(task_key::text) from idem.tasks where task_key like 'over:%'")
			ended := valueOf[[]string](f, `select array_agg(k.fence::text) from idem.takes as k
				where exists (select from idem.tasks as c where c.id = k.tasks[1] and c.status = 'done')`)
			for _, s := range []struct {
				name string
				sql  string
				args []any
				rows int64 // that it finds
				each int   // buffers for each that it looks at
				of   int
			}{
				{"take_end", tasks.EndTakes, []any{"q", ended}, 4, 5, 400},
				{"task_find", tasks.Find, []any{"q", keys}, 100, 10, 100},
				{"task_expire", tasks.Expire, []any{"q", keys}, 100, 15, 100},
				{"task_sweep", tasks.Sweep, []any{50}, 50, 10, 50},
				{"tasks_list", admin.TasksList, []any{nil, nil, []string{"failed"}, nil, nil, nil, nil, nil, nil, 50}, 20, 20, 20},
				{"tasks_choose", admin.TasksChoose, []any{nil, nil, []string{"failed"}, nil, nil, nil, nil, nil, 0, 1_000_000_000, 500}, 20, 20, 20},
				{"task_rescue", tasks.Rescue, []any{"q", 100, "it died", uuid.New()}, 400, 20, 400},
			} {
				f.wantRows(s.rows, s.sql, s.args...)
				n, plan := f.buffersOf(s.sql, s.args...)
				t.Logf("%s reads %d buffers for %d", s.name, n, s.of)
				if n > s.each*s.of {
					t.Errorf("%s reads %d buffers for %d, want %d at most:\n%s", s.name, n, s.of, s.each*s.of, plan)
				}
			}
		})
	}
}

// remembered makes finished tasks of a queue, of which one hundred are over.
const remembered = `insert into idem.tasks (queue, kind, task_key, payload, status, takes, attempts, fence, finished_at, expires_at)
	select 'q', 'job', case when i % ($1 / 100) = 0 then 'over:' else 'kept:' end || i, '{}', 'done', 1, 1, gen_random_uuid(), clock_timestamp(),
	       clock_timestamp() + case when i % ($1 / 100) = 0 then interval '-1 second' else interval '1 day' end
	from generate_series(1, $1::integer) as i`

// takenBy makes tasks of a queue that dead workers have taken, a hundred each, in a status.
const takenBy = `with made as (
		select nextval('idem.tasks_id_seq') as id, i, i / 100 as batch from generate_series(0, $3::integer - 1) as i
	), dead as (
		insert into idem.takes (fence, worker, queue, taken_at, lease_until, started, tasks)
		select gen_random_uuid(), gen_random_uuid(), 'q', clock_timestamp(),
		       clock_timestamp() + case $2::text when 'running' then interval '-1 second' else interval '1 day' end, 5, array_agg(id order by id)
		from made group by batch returning *
	)
	insert into idem.tasks (id, queue, kind, task_key, payload, status, takes, attempts, fence, lease_until, finished_at, expires_at)
	select made.id, 'q', 'job', $1 || ':' || made.i, '{}', $2, 1, 0, dead.fence,
	       case $2 when 'running' then dead.lease_until end, case $2 when 'running' then null else clock_timestamp() end,
	       case $2 when 'running' then null else clock_timestamp() + interval '1 day' end
	from made join dead on made.id = any (dead.tasks)`

// wantRows fails unless a statement finds so many. It is undone.
func (f *floor) wantRows(want int64, sql string, args ...any) {
	f.t.Helper()
	tx, err := f.pool.Begin(context.Background())
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	tag, err := tx.Exec(context.Background(), sql, args...)
	if err != nil || tag.RowsAffected() != want {
		f.t.Fatalf("found %d (%v), want %d, by:\n%s", tag.RowsAffected(), err, want, sql)
	}
}
