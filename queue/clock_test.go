package queue_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/idem-go/idem/queue"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// PostgreSQL owns the clock: no source of the package asks another one what time it is.
func TestT20_noSourceAsksForTheTime(t *testing.T) {
	files, err := fs.Glob(os.DirFS("."), "*.go")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		read++
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			// time.Until and context's deadlines measure how long something takes.
			if of, ok := s.X.(*ast.Ident); ok && of.Name == "time" && (s.Sel.Name == "Now" || s.Sel.Name == "Since") {
				t.Errorf("%s asks for time.%s", name, s.Sel.Name)
			}
			return true
		})
	}
	if read < 20 {
		t.Errorf("only %d sources were read", read)
	}
}

// Session, server and machine are in three time zones, one of which is about to be a day
// away from another.
func TestT20_timeZonesChangeNothing(t *testing.T) {
	f := newFloor(t)
	f.exec(`do $$ begin execute format('alter database %I set timezone = ''Pacific/Kiritimati''', current_database()); end $$`)
	config, err := pgxpool.ParseConfig(f.url)
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.RuntimeParams["timezone"] = "America/St_Johns"
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	f.db = f.open(pool)
	o := orders{URL: f.url, Concurrency: 10, Lease: shortLease, Timeout: time.Minute}

	// A process of a third zone holds one; it dies.
	f.enqueue(o.kind(), job{N: 1, Do: "hang"})
	p := startProcess(t, o, "TZ=Asia/Kathmandu", "PGTZ=Asia/Kathmandu")
	f.until("its handler runs", 20*time.Second, func() bool { return p.says("runs ") == 1 })
	f.wantCount(1, "select count(*) from idem.tasks where lease_until between clock_timestamp() and clock_timestamp() + interval '1 second'")
	crash := f.now()
	p.kill()

	many := []queue.Task[job]{
		{Key: "now", Payload: job{N: 2}},
		{Key: "later", Payload: job{N: 3}, Delay: 500 * time.Millisecond},
		{Key: "at", Payload: job{N: 4}, RunAt: f.now().In(time.FixedZone("there", -11*3600)).Add(500 * time.Millisecond)},
		{Key: "tomorrow", Payload: job{N: 5}, Delay: 24 * time.Hour},
		{Key: "again", Payload: job{N: 6, Do: "again"}},
	}
	if _, err := o.kind().EnqueueMany(t.Context(), pool, many...); err != nil {
		t.Fatal(err)
	}
	w := f.worker()
	failed := make(chan struct{}, 1)
	o.kind().Handle(w, func(ctx context.Context, tx pgx.Tx, j job) error {
		if j.Do == "again" && len(failed) == 0 {
			failed <- struct{}{}
			return errors.New("once")
		}
		return runs(ctx, tx, j)
	})
	f.run(w)
	f.untilCount(5, 10*time.Second, "select count(*) from idem.tasks where status = 'done'")
	f.wantCount(1, "select count(*) from idem.tasks where task_key = 'tomorrow' and status = 'pending' and run_at - created_at = interval '1 day'")
	f.wantCount(2, "select count(*) from idem.tasks where task_key in ('later', 'at') and finished_at >= run_at and finished_at < run_at + interval '2 seconds'")
	if late := valueOf[float64](f, "select extract(epoch from finished_at - $1)::float8 from idem.tasks where task_key is null", crash); late > (shortLease + 2*time.Second).Seconds() {
		t.Errorf("the dead one's is done %.1fs after its death", late)
	}
	f.wantCount(5, "select count(*) from idem.tasks where expires_at = finished_at + interval '7 days'")
}
