//go:build unix

package embedded

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestDataDir_isKeptAndOpenedAgain(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(openDir(t), "new", "data")
	s := mustStart(t, Config{DataDir: dir})
	if s.DataDir() != dir {
		t.Errorf("DataDir() = %q, want %q", s.DataDir(), dir)
	}
	write(t, s, "create table kept as select 'yes' as answer")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := mustStart(t, Config{DataDir: dir})
	if got := ask(t, again.URL(), "select answer from kept"); got != "yes" {
		t.Errorf("the table says %q, want yes", got)
	}
}

func write(t *testing.T, s *Server, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func TestDataDir_ofAKilledProgramIsRecovered(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(openDir(t), "data")
	c := startChild(t, "wait", nil, "IDEM_EMBEDDED_DATA="+dir)
	if c.Error != "" {
		t.Fatal(c.Error)
	}
	conn, err := pgx.Connect(t.Context(), c.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "create table kept as select 'yes' as answer"); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.cmd.Wait() // killed
	// At once: the server may be stopping still.
	s := mustStart(t, Config{DataDir: dir})
	if got := ask(t, s.URL(), "select answer from kept"); got != "yes" {
		t.Errorf("the table says %q, want yes: it was committed", got)
	}
}

func TestDataDir_ofAProgramKilledWhileMakingItIsMadeAgain(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(openDir(t), "data")
	c, _ := launchChild(t, "wait", nil, "IDEM_EMBEDDED_DATA="+dir)
	eventually(t, "initdb works", func() bool { return !gone(filepath.Join(dir, "PG_VERSION")) })
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.cmd.Wait() // killed
	eventually(t, "initdb clears up", func() bool {
		entries, err := os.ReadDir(dir)
		return err == nil && len(entries) == 0
	})
	s := mustStart(t, Config{DataDir: dir, Settings: fast})
	if got := ask(t, s.URL(), "select 'in'"); got != "in" {
		t.Errorf("got %q, want in", got)
	}
}

// After a crash of the machine postmaster.pid is left, and its number may be
// nobody's or somebody else's.
func TestDataDir_withAStalePidIsRecovered(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(openDir(t), "data")
	if err := mustStart(t, Config{DataDir: dir, Settings: fast}).Close(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{os.Getpid(), 1 << 30} {
		stale := strconv.Itoa(pid) + "\n" + dir + "\n1700000000\n5432\n\n127.0.0.1\n  1  1\nready   \n"
		if err := os.WriteFile(filepath.Join(dir, "postmaster.pid"), []byte(stale), 0o600); err != nil {
			t.Fatal(err)
		}
		who, err := serverAccount(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := who.own(filepath.Join(dir, "postmaster.pid")); err != nil {
			t.Fatal(err)
		}
		s, err := Start(t.Context(), Config{DataDir: dir, Settings: fast})
		if err != nil {
			t.Fatalf("with the stale pid %d: %v", pid, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDataDir_inUseIsRefusedByPid(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(openDir(t), "data")
	s := mustStart(t, Config{DataDir: dir, Settings: fast})
	p, _ := postmasterOf(dir)
	_, err := Start(t.Context(), Config{DataDir: dir})
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "pid "+strconv.Itoa(p.pid)+":") {
		t.Errorf("%v, want %v with pid %d", err, ErrInUse, p.pid)
	}
	if got := ask(t, s.URL(), "select 'in'"); got != "in" {
		t.Errorf("the first server answers %q, want in", got)
	}
}

// A server that nobody of us started holds no lock of ours.
func TestDataDir_servedByAForeignServerIsRefused(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(openDir(t), "data")
	s := mustStart(t, Config{DataDir: dir, Settings: fast})
	if err := s.data.unlock(); err != nil {
		t.Fatal(err)
	}
	s.data.lock = nil
	p, _ := postmasterOf(dir)
	_, err := Start(t.Context(), Config{DataDir: dir})
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), strconv.Itoa(p.pid)) {
		t.Errorf("%v, want %v with pid %d", err, ErrInUse, p.pid)
	}
}

func TestDataDir_ofAnotherVersionIsRefused(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(openDir(t), "data")
	s := mustStart(t, Config{DataDir: dir, Settings: fast})
	version := s.Version()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "PG_VERSION"), []byte("13\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Config{DataDir: dir})
	if !errors.Is(err, ErrVersion) {
		t.Fatalf("%v, want %v", err, ErrVersion)
	}
	for _, want := range []string{"PostgreSQL 13", version, dir, "install PostgreSQL 13"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

func TestDataDir_withSomethingElseInItIsRefusedAndUntouched(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{"letters": "letter.txt", "a foreign cluster": "PG_VERSION"} {
		t.Run(name, func(t *testing.T) {
			dir := openDir(t)
			major, _, _ := strings.Cut(machineVersion(t), ".")
			if err := os.WriteFile(filepath.Join(dir, file), []byte(major+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			before, err := os.Stat(dir)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Start(t.Context(), Config{DataDir: dir}); !errors.Is(err, ErrDataDir) {
				t.Errorf("%v, want %v", err, ErrDataDir)
			}
			after, err := os.Stat(dir)
			if err != nil {
				t.Fatal(err)
			}
			if before.Mode() != after.Mode() || ownerOf(before) != ownerOf(after) || gone(filepath.Join(dir, file)) {
				t.Errorf("%s was changed: %v to %v", dir, before.Mode(), after.Mode())
			}
		})
	}
}

func machineVersion(t *testing.T) string {
	t.Helper()
	who, err := serverAccount("")
	if err != nil {
		t.Fatal(err)
	}
	found, refusals := examine(t.Context(), machineDirs(), who)
	if len(found) == 0 {
		t.Fatalf("no PostgreSQL on this machine: %v", refusals)
	}
	return found[0].version
}

// Root's server cannot enter a closed directory; for others the case is a
// directory that they may not write in.
func TestDataDir_outOfReachIsRefused(t *testing.T) {
	t.Parallel()
	closed := filepath.Join(openDir(t), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		if err := os.Chmod(closed, 0o500); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Start(t.Context(), Config{DataDir: filepath.Join(closed, "data")})
	if !errors.Is(err, ErrDataDir) || !strings.Contains(err.Error(), closed) {
		t.Errorf("%v, want %v that names %s", err, ErrDataDir, closed)
	}
}

func TestDataDir_thatIsEmptyIsUsed(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	mustStart(t, Config{DataDir: dir, Settings: fast})
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("%s is %v, want closed to others", dir, info.Mode())
	}
	if _, err := os.Stat(filepath.Join(dir, "PG_VERSION")); err != nil {
		t.Error(err)
	}
}
