package queue_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/idem-go/idem/internal/pgsql/tasks"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// enqueuer is the URL of a role that has what docs/operations.md grants to a program that
// enqueues by plain SQL, and a table of its own.
func enqueuer(t *testing.T, owner *pgxpool.Pool, at string) string {
	t.Helper()
	_, grants, found := strings.Cut(read(t, "../docs/operations.md"), "-- enqueuer\n")
	grants, _, _ = strings.Cut(grants, "\n\n")
	if !found {
		t.Fatal("docs/operations.md has no grants for an enqueuer")
	}
	for _, sql := range []string{"create role idem_enqueuer login password 'enqueuer'", grants,
		"create table orders (id bigint primary key, amount bigint not null)", "grant select, insert on orders to idem_enqueuer"} {
		if _, err := owner.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if _, err := owner.Exec(context.Background(), "drop owned by idem_enqueuer; drop role idem_enqueuer"); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal("the URL is none of pgtest")
	}
	u.User = url.UserPassword("idem_enqueuer", "enqueuer")
	return u.String()
}

// psql runs a script, and returns what it has written.
func psql(t *testing.T, url, script string) (string, error) {
	t.Helper()
	path, err := exec.LookPath("psql")
	if err != nil {
		t.Skip("not run: it needs psql")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set", "ON_ERROR_STOP=1", url)
	cmd.Stdin = strings.NewReader(script)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// TestT1_T3_plainSQL runs what docs/tasks.md shows, with psql, as a role with nothing but
// the grants.
func TestT1_T3_plainSQL(t *testing.T) {
	scripts := blocks(t, "sql")
	if len(scripts) != 2 {
		t.Fatalf("%s has %d scripts, want one that enqueues and one that asks", page, len(scripts))
	}
	enqueue, known := scripts[0], scripts[1]
	at := pgtest.Direct(t, pgtest.NewURL(t))
	pool := pgtest.Pool(t, at)
	role := enqueuer(t, pool, at)
	w := listen(t, pool)
	run := func(script, want string) {
		t.Helper()
		if out, err := psql(t, role, script); err != nil || out != want {
			t.Fatalf("got %q (%v), want %q, of:\n%s", out, err, want, script)
		}
	}
	count := func(want int) {
		t.Helper()
		if got := ask[int](t, pool, "select count(*) from idem.tasks") + 10*ask[int](t, pool, "select count(*) from orders"); got != 11*want {
			t.Errorf("got 10 times the orders and the tasks as %d, want %d of each", got, want)
		}
	}

	rolledBack := strings.NewReplacer("17", "18", "commit;", "rollback;", "select pg_notify('idem_tasks', 'default');", "").Replace(enqueue)
	if rolledBack == enqueue || strings.Contains(rolledBack, "notify") {
		t.Fatal("the script has changed")
	}
	if _, err := psql(t, role, rolledBack); err != nil {
		t.Fatal(err)
	}
	count(0)
	out, err := psql(t, role, enqueue)
	if id := ask[int64](t, pool, "select id from idem.tasks"); err != nil || out != fmt.Sprintf("%d|pending", id) {
		t.Fatalf("got %q (%v), want %d|pending", out, err, id)
	}
	count(1)
	if got := w.next(); got != queue.DefaultQueue {
		t.Errorf("the queue %q was told of", got)
	}
	if out, err := psql(t, role, enqueue); err == nil || !strings.Contains(out, "orders_pkey") {
		t.Errorf("again: got %q (%v), want the order to be refused, and its task with it", out, err)
	}
	again := strings.Replace(enqueue, "1500);", "1500) on conflict do nothing;", 1)
	run(again, "") // no row: the key is remembered
	run(known, out)
	count(1)

	// It is the same task from Go, whose JSON has no space in it.
	kind := queue.Define[receipt]("receipt.send", queue.Options{})
	e, err := kind.Enqueue(t.Context(), pool, "receipt:order:17", receipt{17})
	if err != nil || e.Outcome != queue.Duplicate {
		t.Errorf("from Go: got %+v, %v, want a duplicate", e, err)
	}
	worker := queue.NewWorker(open(t, pool), queue.Config{PollOnly: true, Poll: 20 * time.Millisecond})
	kind.Handle(worker, func(ctx context.Context, tx pgx.Tx, r receipt) error {
		_, err := tx.Exec(ctx, "update orders set amount = -amount where id = $1", r.Order)
		return err
	})
	working(t, worker)
	eventually(t, pool, "select exists (select from idem.tasks where status = 'done') and exists (select from orders where id = 17 and amount = -1500)")
	run(known, fmt.Sprintf("%d|done", e.ID))
	if _, err := psql(t, role, "select payload from idem.tasks"); err == nil {
		t.Error("the role reads payloads, which nobody has granted")
	}
}

// A row that no statement could count on is refused, whoever writes it; and the last one
// that is not keeps nobody's task from being found.
func TestT11_anOddRowIsRefusedAndTheRescueGoesOn(t *testing.T) {
	f := newFloor(t)
	f.exec(takenBy, "dead", "running", 200)
	for _, tt := range []struct{ column, value, constraint string }{
		{"attempts", "2147483647", "attempts_range"},
		{"attempts", "1000001", "attempts_range"},
		{"attempts", "-1", "attempts_range"},
		{"takes", "2147483647", "takes_range"},
		{"takes", "-1", "takes_range"},
		{"errors", "'{}'", "errors_array"},
		{"errors", "'null'", "errors_array"},
	} {
		for _, sql := range []string{
			"update idem.tasks set " + tt.column + " = " + tt.value,
			"insert into idem.tasks (kind, payload, " + tt.column + ") values ('job', '{}', " + tt.value + ")",
		} {
			_, err := f.pool.Exec(t.Context(), sql)
			var refused *pgconn.PgError
			if !errors.As(err, &refused) || refused.ConstraintName != tt.constraint {
				t.Errorf("%s: got %v, want it refused by %s", sql, err, tt.constraint)
			}
		}
	}
	f.exec("update idem.tasks set attempts = 1000000, takes = 1000000000, max_attempts = 1000 where task_key = 'dead:0'")
	f.exec("update idem.tasks set errors = '[1, null, {}]' where task_key = 'dead:1'")
	tag, err := f.pool.Exec(t.Context(), tasks.Rescue, "q", 100, "it died", uuid.New())
	if err != nil || tag.RowsAffected() != 200 {
		t.Errorf("%d were found (%v), want all 200", tag.RowsAffected(), err)
	}
	f.wantCount(1, "select count(*) from idem.tasks where status = 'failed' and attempts = 1000000 and jsonb_array_length(errors) = 1")
	f.wantCount(199, "select count(*) from idem.tasks where status = 'pending'")
	f.wantCount(1, "select count(*) from idem.tasks where jsonb_array_length(errors) = 4")
	f.wantCount(0, "select count(*) from idem.takes")
}
