package idemhttp_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/internal/embedded"
	"github.com/idem-go/idem/internal/faultproxy"
	"github.com/idem-go/idem/internal/testdb"
	"github.com/jackc/pgx/v5/pgxpool"
)

// server is a PostgreSQL of the test's own, which it may end and start again, at
// an address that stays.
type server struct {
	t       testing.TB
	config  embedded.Config
	running *embedded.Server
	front   *faultproxy.TCP
}

// newServer starts a migrated server with settings.
func newServer(t testing.TB, settings map[string]string) *server {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "idem-server-") // where the server's user can reach it
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, config: embedded.Config{DataDir: filepath.Join(dir, "data"), Settings: settings}}
	t.Cleanup(func() {
		if s.running != nil {
			s.check()
			if err := s.running.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	s.start()
	if s.front, err = faultproxy.NewTCP(s.address(), 1, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.front.Close(); err != nil {
			t.Error(err)
		}
	})
	pool := s.direct()
	defer pool.Close()
	if _, err := idem.Migrate(context.Background(), pool); err != nil {
		t.Fatal(err)
	}
	return s
}

// start starts the server, or starts it again on another port.
func (s *server) start() {
	s.t.Helper()
	running, err := embedded.Start(context.Background(), s.config)
	if err != nil {
		s.t.Fatal(err)
	}
	s.running = running
	if s.front != nil {
		s.front.Retarget(s.address())
	}
}

// crash ends the server as it stands: it writes nothing down, and recovers when
// it is started again.
func (s *server) crash() {
	s.t.Helper()
	content, err := os.ReadFile(filepath.Join(s.config.DataDir, "postmaster.pid"))
	if err != nil {
		s.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.SplitN(string(content), "\n", 2)[0])
	if err != nil {
		s.t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGQUIT); err != nil { // pg_ctl stop -m immediate
		s.t.Fatal(err)
	}
	err = s.running.Close()
	s.running = nil
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) address() string {
	u, err := url.Parse(s.running.URL())
	if err != nil {
		s.t.Fatal(err)
	}
	return u.Host
}

// url is the server's at the address that stays.
func (s *server) url() string {
	u, err := url.Parse(s.running.URL())
	if err != nil {
		s.t.Fatal(err)
	}
	u.Host = s.front.Addr()
	return u.String()
}

// direct is a pool past the address that stays. Close it.
func (s *server) direct() *pgxpool.Pool {
	s.t.Helper()
	config, err := pgxpool.ParseConfig(s.running.URL())
	if err != nil {
		s.t.Fatal(err)
	}
	idem.Prepare(config)
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		s.t.Fatal(err)
	}
	return pool
}

// must runs statements in one session.
func (s *server) must(statements ...string) {
	s.t.Helper()
	pool := s.direct()
	defer pool.Close()
	conn, err := pool.Acquire(context.Background())
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Release()
	for _, sql := range statements {
		if _, err := conn.Exec(context.Background(), sql); err != nil {
			s.t.Fatalf("%s: %v", sql, err)
		}
	}
}

// check checks the invariants.
func (s *server) check() {
	s.t.Helper()
	pool := s.direct()
	defer pool.Close()
	for _, err := range testdb.Check(context.Background(), pool) {
		s.t.Errorf("check: %v", err)
	}
}
