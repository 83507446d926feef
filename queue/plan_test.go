package queue_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/idem-go/idem/internal/pgsql/tasks"
	"github.com/idem-go/idem/queue"
)

// backlog is how many tasks wait.
const backlog = 60_000

// batch is how many are taken or finished at once, and buffersEach what that may read for each.
const batch, buffersEach = 1000, 25

// newBacklog has tasks to be taken, of which the planner believes that they are running.
func newBacklog(t *testing.T) *floor {
	t.Helper()
	f := newFloor(t)
	f.exec("alter table idem.tasks set (autovacuum_enabled = off)")
	const insert = "insert into idem.tasks (kind, payload, status, fence, lease_until) select 'job', '{}', $1, $2::uuid, $3::timestamptz from generate_series(1, $4)"
	f.exec(insert, "running", uuid.New(), time.Now(), backlog)
	f.exec("analyze idem.tasks")
	f.exec("truncate idem.tasks")
	f.exec(insert, "pending", nil, nil, backlog)
	return f
}

// A planner that believes that few of the tasks can be taken, as it was when it looked last,
// thinks that reading and sorting them all is cheap.
func TestTake_readsNoMoreOfABacklogThanItTakes(t *testing.T) {
	t.Parallel()
	f := newBacklog(t)
	n := f.buffersOfTake(batch, time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), 0)
	if n > batch*buffersEach {
		t.Errorf("a take of %d reads %d buffers of a backlog of %d tasks, want %d at most", batch, n, backlog, batch*buffersEach)
	}
}

// What is done for many tasks at once reads those, and not the table that they are in.
func TestFinish_readsNoMoreOfABacklogThanItFinishes(t *testing.T) {
	t.Parallel()
	f := newBacklog(t)
	const fence = "00000000-0000-0000-0000-000000000001"
	f.exec(`with taken as (
			update idem.tasks set status = 'running', fence = $1, takes = 1, lease_until = clock_timestamp() + interval '1 hour'
			where id in (select id from idem.tasks order by id limit $2) returning id)
		insert into idem.takes (queue, fence, worker, taken_at, lease_until, started, tasks)
		select $3, $1, gen_random_uuid(), clock_timestamp(), clock_timestamp() + interval '1 hour', 0, array_agg(id) from taken`,
		fence, batch, queue.DefaultQueue)
	ids := valueOf[[]int64](f, "select array_agg(id) from idem.tasks where fence = $1", fence)
	queues, fences := slices.Repeat([]string{queue.DefaultQueue}, batch), slices.Repeat([]string{fence}, batch)
	leases, whole := slices.Repeat([]float64{60}, batch), slices.Repeat([]bool{false}, batch)
	for name, c := range map[string]struct {
		sql  string
		args []any
	}{
		"done":      {tasks.DoneAll, []any{queues, ids, fences}},
		"forget":    {tasks.ForgetAll, []any{queues, ids, fences}},
		"give back": {tasks.Return, []any{queues, ids, fences}},
		"renew":     {tasks.Renew, []any{queues, ids, fences, leases, whole}},
	} {
		n, plan := f.buffersOf(c.sql, c.args...)
		if n > batch*buffersEach || strings.Contains(plan, "Seq Scan on tasks") {
			t.Errorf("%s: %d tasks read %d buffers of a backlog of %d:\n%s", name, batch, n, backlog, plan)
		}
	}
}
