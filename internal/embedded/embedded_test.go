//go:build unix

package embedded

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// fast are settings for data that nobody will miss.
var fast = map[string]string{"fsync": "off"}

// mustStart starts a server that the end of the test closes.
func mustStart(t *testing.T, cfg Config) *Server {
	t.Helper()
	s, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// ask returns the one value that a query on url has for an answer.
func ask(t *testing.T, url, query string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var answer string
	if err := conn.QueryRow(t.Context(), query).Scan(&answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestClose_leavesNothing(t *testing.T) {
	t.Parallel()
	s := mustStart(t, Config{Settings: map[string]string{"fsync": "off", "application_name": "two words"}})
	if got := ask(t, s.URL(), "select current_setting('server_version')"); !strings.HasPrefix(got, s.Version()) {
		t.Errorf("Version() = %q, the server says %q", s.Version(), got)
	}
	if got := ask(t, s.URL(), "select current_setting('fsync')"); got != "off" {
		t.Errorf("fsync is %q, want off as set", got)
	}
	if got := ask(t, s.URL(), "select rolsuper::text from pg_roles where rolname = current_user"); got != "true" {
		t.Errorf("superuser: %s, want true", got)
	}
	p, alive := postmasterOf(s.DataDir())
	if !alive {
		t.Fatal("no postmaster while the server runs")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if isPostgresAlive(p.pid) {
		t.Errorf("postmaster %d lives after Close", p.pid)
	}
	if !gone(s.run.path) {
		t.Errorf("%s is there after Close", s.run.path)
	}
	if left := commandsNaming(t, s.run.path); len(left) > 0 {
		t.Errorf("processes after Close: %q", left)
	}
}

// The best of several counts, since other tests want the processor too.
func TestStart_isReadyInThreeSeconds(t *testing.T) {
	best := time.Hour
	for try := 0; try < 6 && best > 3*time.Second; try++ {
		began := time.Now()
		s := mustStart(t, Config{})
		best = min(best, time.Since(began))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("ready after %v", best)
	if best > 3*time.Second {
		t.Errorf("ready after %v, want under 3 s", best)
	}
}

func isPostgresAlive(pid int) bool { return alive(pid) && isPostgres(pid) }

func TestDatabaseURL_quotesTheName(t *testing.T) {
	t.Parallel()
	s := mustStart(t, Config{Settings: fast})
	conn, err := pgx.Connect(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	const name = `odd "name"/100% ?é`
	if _, err := conn.Exec(t.Context(), "create database "+pgx.Identifier{name}.Sanitize()); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, s.DatabaseURL(name), "select current_database()"); got != name {
		t.Errorf("connected to %q, want %q", got, name)
	}
}

func TestStart_manyAtOnceDoNotMeet(t *testing.T) {
	t.Parallel()
	const n = 4
	var wg sync.WaitGroup
	var servers [n]*Server
	var failures [n]error
	for i := range n {
		wg.Go(func() {
			servers[i], failures[i] = Start(t.Context(), Config{Settings: fast})
		})
	}
	wg.Wait()
	dirs := make(map[string]bool)
	for i, s := range servers {
		if failures[i] != nil {
			t.Error(failures[i])
			continue
		}
		dirs[ask(t, s.URL(), "select current_setting('data_directory')")] = true
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(dirs) != n {
		t.Errorf("%d data directories for %d servers", len(dirs), n)
	}
}

func TestStart_takesAnotherPortWhenTheFirstIsTaken(t *testing.T) {
	t.Parallel()
	first := mustStart(t, Config{Settings: fast})
	second := mustStart(t, Config{Settings: fast})
	log, err := second.run.newLog("clash.log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if err := second.process.stop(); err != nil {
		t.Fatal(err)
	}
	who, err := serverAccount("")
	if err != nil {
		t.Fatal(err)
	}
	found, refusals := examine(t.Context(), machineDirs(), who)
	if len(found) == 0 {
		t.Fatalf("no binaries: %v", refusals)
	}
	second.process, err = supervise(who, log, stopServer(), "", serverCommand(nil, found[0], second.data, first.port)...)
	if err != nil {
		t.Fatal(err)
	}
	if err := waitReady(t.Context(), second.process, second.data, first.port, log.Name()); !errors.Is(err, errPortTaken) {
		t.Errorf("on a taken port: %v, want %v", err, errPortTaken)
	}
}

func TestServer_letsNobodyInWithoutThePassword(t *testing.T) {
	t.Parallel()
	s := mustStart(t, Config{Settings: fast})
	for _, password := range []string{"", "postgres", "wrong"} {
		u, err := url.Parse(s.URL())
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword("postgres", password)
		conn, err := pgx.Connect(t.Context(), u.String())
		if err == nil {
			conn.Close(context.Background())
			t.Errorf("password %q lets in", password)
		}
	}
	if got := ask(t, s.URL(), "select string_agg(distinct auth_method, ',') from pg_hba_file_rules"); got != "scram-sha-256" {
		t.Errorf("methods in pg_hba.conf: %s, want scram-sha-256 only", got)
	}
	if got := ask(t, s.URL(), "select current_setting('listen_addresses') || '|' || current_setting('unix_socket_directories')"); got != "127.0.0.1|" {
		t.Errorf("listens on %q, want 127.0.0.1 and no socket", got)
	}
	for _, path := range []string{s.DataDir(), filepath.Join(s.DataDir(), passwordFile)} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is %v, want closed to others", path, info.Mode())
		}
	}
}

func TestURL_worksForPsqlOfAnotherUser(t *testing.T) {
	t.Parallel()
	psql, err := exec.LookPath("psql")
	if err != nil {
		t.Logf("psql is not installed; the URL is tried with pgx alone")
	}
	s := mustStart(t, Config{Settings: fast})
	if got := ask(t, s.URL(), "select 'in'"); got != "in" {
		t.Errorf("pgx got %q, want in", got)
	}
	if psql == "" {
		return
	}
	output, err := exec.Command(psql, "-XAtc", "select 'in'", s.URL()).CombinedOutput()
	if got := strings.TrimSpace(string(output)); err != nil || got != "in" {
		t.Errorf("psql: %q, %v, want in", got, err)
	}
}

func TestStart_givesUpWhenTheContextEnds(t *testing.T) {
	temp, data := openDir(t), filepath.Join(openDir(t), "data")
	t.Setenv("TMPDIR", temp)
	for name, wait := range map[string]func(){
		"before":        func() {},
		"during initdb": func() { eventually(t, "initdb works", func() bool { return !gone(filepath.Join(data, "PG_VERSION")) }) },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		if name == "before" {
			cancel()
		}
		failure := make(chan error, 1)
		go func() {
			s, err := Start(ctx, Config{DataDir: data})
			if err == nil {
				err = errors.Join(errors.New("it started"), s.Close())
			}
			failure <- err
		}()
		wait()
		cancel()
		if err := <-failure; !errors.Is(err, context.Canceled) || errors.Is(err, ErrNoBinaries) {
			t.Errorf("%s: %v, want %v", name, err, context.Canceled)
		}
		assertEmpty(t, temp)
		assertEmpty(t, data)
	}
}

func TestStart_cleansUpAfterABadSetting(t *testing.T) {
	parent := openDir(t)
	t.Setenv("TMPDIR", parent)
	_, err := Start(t.Context(), Config{Settings: map[string]string{"shared_buffers": "much"}})
	if err == nil || !strings.Contains(err.Error(), "shared_buffers") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v, want one line that names shared_buffers", err)
	}
	assertEmpty(t, parent)
}

func assertEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) > 0 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestStart_saysWhatItDoes(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	s := mustStart(t, Config{Log: &log, Settings: fast})
	want := fmt.Sprintf("PostgreSQL %s listens on 127.0.0.1:%d\n", s.Version(), s.port)
	if !strings.HasSuffix(log.String(), want) || strings.Contains(log.String(), s.password) {
		t.Errorf("log %q, want it to end with %q and hide the password", log.String(), want)
	}
}

// Two servers that start at the same time may both bind a port. Only one can listen then.
func TestStartFailure_ofAServerThatCannotListenIsATakenPort(t *testing.T) {
	log := filepath.Join(t.TempDir(), "server.log")
	const said = `LOG:  could not listen on IPv4 address "127.0.0.1": Address already in use
WARNING:  could not create listen socket for "127.0.0.1"
FATAL:  could not create any TCP/IP sockets
`
	if err := os.WriteFile(log, []byte(said), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := startFailure(&dataDir{path: "data"}, log); !errors.Is(err, errPortTaken) {
		t.Errorf("got %v, want %v", err, errPortTaken)
	}
}
