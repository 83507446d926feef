package queue_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/idem-go/idem/internal/pgsql/tasks"
	sqltx "github.com/idem-go/idem/internal/pgsql/tx"
	"github.com/jackc/pgx/v5/pgxpool"
)

// backlog is how many tasks wait.
const backlog = 60_000

// batch is how many are taken or finished at once, and buffersEach what that may read for each.
const batch, buffersEach = 1000, 40

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

// What is done for many tasks at once reads those, and not the table that they are in: also
// by a plan that a connection has kept since the table had a page.
func TestFinish_readsNoMoreOfABacklogThanItFinishes(t *testing.T) {
	t.Parallel()
	const fence = "00000000-0000-0000-0000-000000000001"
	f := newFloor(t)
	conn, err := f.pool.Acquire(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	kept := &keptPlans{f, conn}
	kept.exec("set plan_cache_mode = force_generic_plan")
	kept.exec("insert into idem.tasks (kind, payload) select 'job', '{}' from generate_series(1, 30)")
	kept.exec("vacuum analyze idem.tasks")
	statements := map[string]string{"done": tasks.DoneAll, "forget": tasks.ForgetAll, "give_back": tasks.Return, "renew": tasks.Renew,
		"undo": tasks.Undo, "rescue": tasks.Rescue, "end_takes": tasks.EndTakes}
	for name, sql := range statements {
		kept.exec("prepare " + name + " as " + sql)
		kept.inTx(func() { kept.exec("execute " + name + arguments(name, fence, nil)) })
	}
	kept.exec("insert into idem.tasks (kind, payload) select 'job', '{}' from generate_series(1, $1::integer)", backlog)
	kept.exec(`with taken as (
			update idem.tasks set status = 'running', fence = $1::uuid, takes = 1, lease_until = clock_timestamp() - interval '1 second'
			where id in (select id from idem.tasks order by id limit $2::integer) returning id)
		insert into idem.takes (queue, fence, worker, taken_at, lease_until, started, tasks)
		select 'default', $1::uuid, gen_random_uuid(), clock_timestamp(), clock_timestamp() - interval '1 second', 0, array_agg(id) from taken`, fence, batch)
	ids := valueOf[[]int64](f, "select array_agg(id) from idem.tasks where fence = $1", fence)
	for name := range statements {
		kept.inTx(func() {
			n, plan := f.buffersIn(conn, "execute "+name+arguments(name, fence, ids))
			if n > batch*buffersEach || strings.Contains(plan, "Seq Scan on tasks") {
				t.Errorf("%s: %d tasks read %d buffers of a backlog of %d:\n%s", name, batch, n, backlog, plan)
			}
		})
	}
}

// keptPlans is a connection with prepared statements.
type keptPlans struct {
	f    *floor
	conn *pgxpool.Conn
}

func (k *keptPlans) exec(sql string, args ...any) {
	k.f.t.Helper()
	if _, err := k.conn.Exec(context.Background(), sql, args...); err != nil {
		k.f.t.Fatalf("%v: %s", err, sql)
	}
}

// inTx does something in a transaction as the worker's are, which is undone.
func (k *keptPlans) inTx(do func()) {
	k.exec("begin")
	k.exec(sqltx.ByIndex)
	do()
	k.exec("rollback")
}

// arguments are those of a statement about tasks of one take.
func arguments(name, fence string, ids []int64) string {
	each := func(value string) string {
		return "'{" + strings.TrimSuffix(strings.Repeat(value+",", len(ids)), ",") + "}'"
	}
	numbers := strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ","), "[]")
	three := each("default") + ", '{" + numbers + "}', " + each(fence)
	switch name {
	case "renew":
		return "(" + three + ", " + each("60") + ", " + each("true") + ")"
	case "undo":
		return "('default', '" + fence + "', '" + fence + "')"
	case "rescue":
		return "('default', 100, 'it died', '" + fence + "')"
	case "end_takes":
		return "('default', '{" + fence + "}')"
	}
	return "(" + three + ")"
}
