package faultproxy_test

import (
	"context"
	"testing"
	"time"

	"github.com/idem-go/idem/internal/faultproxy"
	"github.com/idem-go/idem/internal/pgtest"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// patience is how long a test waits for what must happen.
const patience = 10 * time.Second

// rig is a database with a table of marks, seen directly and through a proxy.
type rig struct {
	*faultproxy.Postgres
	direct *pgxpool.Pool
}

// newRig is a rig without requests to cancel: pgx sends one for what a lost connection was
// doing, which may still be at the COMMIT that the test has let through.
func newRig(t *testing.T) *rig {
	t.Helper()
	r := newBareRig(t)
	r.Add(faultproxy.Rule{Name: "cancel", When: faultproxy.Is(faultproxy.FromClient, "CancelRequest"), Times: -1, Do: faultproxy.Cut()})
	return r
}

func newBareRig(t *testing.T) *rig {
	t.Helper()
	url := pgtest.NewURL(t)
	r := &rig{Postgres: newPostgres(t, url), direct: pgtest.Pool(t, url)}
	r.must(t, "create table public.marks (n bigint primary key)")
	return r
}

// newPostgres is a proxy that must close without an error.
func newPostgres(t *testing.T, upstream string) *faultproxy.Postgres {
	t.Helper()
	p, err := faultproxy.NewPostgres(upstream)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return p
}

func (r *rig) must(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := r.direct.Exec(context.Background(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// connect is a connection through the proxy that the server knows by the test's
// name.
func (r *rig) connect(t *testing.T) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(r.URL())
	if err != nil {
		t.Fatal(err)
	}
	config.RuntimeParams["application_name"] = name(t)
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = conn.Close(ctx) // mostly broken by the test
		<-conn.PgConn().CleanupDone()
	})
	return conn
}

func name(t *testing.T) string { return t.Name()[max(0, len(t.Name())-60):] }

// marks is how many marks are committed.
func (r *rig) marks(t *testing.T) (n int) {
	t.Helper()
	if err := r.direct.QueryRow(context.Background(), "select count(*) from public.marks").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// sessions is how many connections of this test the server has.
func (r *rig) sessions(t *testing.T) (n int) {
	t.Helper()
	const query = "select count(*) from pg_stat_activity where application_name = $1 and backend_type = 'client backend'"
	if err := r.direct.QueryRow(context.Background(), query, name(t)).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (r *rig) wantSessions(t *testing.T, want int) {
	t.Helper()
	got := r.sessions(t)
	eventually(t, func() bool { got = r.sessions(t); return got == want }, func() {
		t.Fatalf("the server has %d sessions of this test, want %d", got, want)
	})
}

// wantOpen waits until the proxy has so many connections.
func (r *rig) wantOpen(t *testing.T, want int) {
	t.Helper()
	eventually(t, func() bool { return r.Open() == want }, func() {
		t.Errorf("the proxy has %d connections, want %d", r.Open(), want)
	})
}

func (r *rig) wantMarks(t *testing.T, want int) {
	t.Helper()
	if got := r.marks(t); got != want {
		t.Errorf("%d marks are committed, want %d", got, want)
	}
}

// eventually calls failed if the condition does not come true.
func eventually(t *testing.T, condition func() bool, failed func()) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !condition(); <-tick.C {
		if time.Now().After(deadline) {
			failed()
			return
		}
	}
}

func wantReached(t *testing.T, a *faultproxy.Armed) {
	t.Helper()
	select {
	case <-a.Reached():
	case <-time.After(patience):
		t.Fatalf("%s was not reached", a.Name())
	}
}

// mark inserts n and commits, in one round trip.
func mark(ctx context.Context, conn *pgx.Conn, n int) error {
	b := &pgx.Batch{}
	b.Queue("begin")
	b.Queue("insert into public.marks values ($1)", n)
	b.Queue("commit")
	return conn.SendBatch(ctx, b).Close()
}

// marking is mark on another goroutine.
func marking(ctx context.Context, conn *pgx.Conn, n int) <-chan error {
	done := make(chan error, 1)
	go func() { done <- mark(ctx, conn, n) }()
	return done
}

func wait(t *testing.T, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		t.Fatal("the client did not come back")
		return nil
	}
}
