// Package node shows that a program in another language enqueues tasks in its own
// transaction, with nothing of Idem's but the table.
package node

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// installed is a directory with the program and the packages that it needs.
func installed(t *testing.T) string {
	t.Helper()
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("not run: it needs %s", tool)
		}
	}
	dir := t.TempDir()
	for _, name := range []string{"order.mjs", "package.json", "package-lock.json"} {
		text, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	install := exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	return dir
}

// order runs the program, and returns what it has written.
func order(t *testing.T, dir, url string, args ...string) (out string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	program := exec.CommandContext(ctx, "node", append([]string{"order.mjs"}, args...)...)
	program.Dir, program.Env = dir, append(os.Environ(), "DATABASE_URL="+url)
	text, err := program.CombinedOutput()
	return strings.TrimSpace(string(text)), err
}

type receipt struct {
	Order int64 `json:"order"`
}

var receiptSend = queue.Define[receipt]("receipt.send", queue.Options{})

func TestT1_T3_tasksEnqueuedByNodeAreThoseOfGo(t *testing.T) {
	dir := installed(t)
	url := pgtest.NewURL(t)
	pool := pgtest.Pool(t, url)
	for _, sql := range []string{
		"create table amounts (amount bigint primary key)", "insert into amounts values (1500)",
		"create table orders (id bigint primary key, amount bigint not null references amounts deferrable initially deferred)",
		"create table receipts (order_id bigint)",
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"new pending", "duplicate pending"} {
		if out, err := order(t, dir, url, "17", "1500"); err != nil || out != want {
			t.Fatalf("got %s (%v), want %s", out, err, want)
		}
	}
	// One key for both: Go finds what Node has enqueued, and the other way round.
	if e, err := receiptSend.Enqueue(t.Context(), pool, "receipt:order:17", receipt{17}); err != nil || e.Outcome != queue.Duplicate {
		t.Errorf("from Go: got %+v, %v, want a duplicate", e, err)
	}
	if _, err := receiptSend.Enqueue(t.Context(), pool, "receipt:order:18", receipt{18}); err != nil {
		t.Fatal(err)
	}
	if out, err := order(t, dir, url, "18", "1500"); err != nil || out != "duplicate pending" {
		t.Errorf("got %s (%v), want a duplicate", out, err)
	}
	// An order that is refused at its commit leaves no task.
	if out, err := order(t, dir, url, "19", "-1"); err == nil || !strings.Contains(out, "orders_amount_fkey") {
		t.Errorf("an amount of -1: got %s (%v), want it to be refused", out, err)
	}
	wantOrders(t, pool, "17, 18", "17, 18")
	handled(t, pool)
	if out, err := order(t, dir, url, "17", "1500"); err != nil || out != "duplicate done" {
		t.Errorf("got %s (%v), want a duplicate that is done", out, err)
	}
}

// wantOrders compares the orders, and those of the tasks.
func wantOrders(t *testing.T, pool *pgxpool.Pool, orders, tasks string) {
	t.Helper()
	var gotOrders, gotTasks string
	err := pool.QueryRow(t.Context(), `select (select string_agg(id::text, ', ' order by id) from orders),
		(select string_agg(convert_from(payload, 'UTF8')::json ->> 'order', ', ' order by task_key) from idem.tasks)`).Scan(&gotOrders, &gotTasks)
	if err != nil || gotOrders != orders || gotTasks != tasks {
		t.Errorf("orders %s and tasks of %s (%v), want %s and %s", gotOrders, gotTasks, err, orders, tasks)
	}
}

// handled lets a worker in Go do what there is to do.
func handled(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	done := make(chan struct{}, 10)
	db, err := idem.Open(ctx, pool, idem.Config{Observe: func(_ context.Context, e idem.Event) {
		if e.Kind == idem.EventTask && e.TaskResult == idem.TaskDone {
			done <- struct{}{}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	w := queue.NewWorker(db, queue.Config{})
	receiptSend.Handle(w, func(ctx context.Context, tx pgx.Tx, r receipt) error {
		_, err := tx.Exec(ctx, "insert into receipts values ($1)", r.Order)
		return err
	})
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	for range 2 {
		select {
		case <-done:
		case <-ctx.Done():
			t.Error("the tasks were not done")
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	var receipts string
	if err := pool.QueryRow(t.Context(), "select string_agg(order_id::text, ', ' order by order_id) from receipts").Scan(&receipts); err != nil || receipts != "17, 18" {
		t.Errorf("receipts of %s (%v), want 17, 18", receipts, err)
	}
}
