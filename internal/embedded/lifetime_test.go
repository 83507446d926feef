//go:build unix

package embedded

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Every way to die leaves neither a process nor a directory.
func TestServer_endsWithItsProgram(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		how  string
		act  string
		kill syscall.Signal
	}{
		{how: "Close", act: "close"},
		{how: "panic", act: "panic"},
		{how: "os.Exit", act: "exit"},
		{how: "SIGTERM", act: "wait", kill: syscall.SIGTERM},
		{how: "SIGINT", act: "wait", kill: syscall.SIGINT},
		{how: "SIGQUIT", act: "wait", kill: syscall.SIGQUIT},
		{how: "SIGKILL", act: "wait", kill: syscall.SIGKILL},
	} {
		t.Run(test.how, func(t *testing.T) {
			t.Parallel()
			c := startChild(t, test.act, nil)
			if c.Error != "" {
				t.Fatal(c.Error)
			}
			if !isPostgresAlive(c.Pid) {
				t.Fatalf("postmaster %d does not live while its program does", c.Pid)
			}
			if test.kill != 0 {
				if err := c.cmd.Process.Signal(test.kill); err != nil {
					t.Fatal(err)
				}
			} else if _, err := c.input.Write([]byte("go\n")); err != nil {
				t.Fatal(err)
			}
			_ = c.cmd.Wait() // how it ended is its own affair
			assertNothingLeft(t, c)
		})
	}
}

// A terminal's Ctrl-C goes to the whole foreground group.
func TestServer_doesNotGetTheTerminalsCtrlC(t *testing.T) {
	s := mustStart(t, Config{Settings: fast})
	p, _ := postmasterOf(s.DataDir())
	server, err := syscall.Getpgid(p.pid)
	if err != nil {
		t.Fatal(err)
	}
	if ours := syscall.Getpgrp(); server == ours {
		t.Errorf("the postmaster is in our process group %d", ours)
	}
}

func assertNothingLeft(t *testing.T, c *child) {
	t.Helper()
	eventually(t, "the postmaster ends", func() bool { return !isPostgresAlive(c.Pid) })
	eventually(t, "the run directory goes", func() bool { return gone(c.RunDir) })
	eventually(t, "all processes end", func() bool { return len(commandsNaming(t, c.RunDir)) == 0 })
}

func TestServer_endsWhenItsShellIsKilled(t *testing.T) {
	t.Parallel()
	s := mustStart(t, Config{Settings: fast})
	p, _ := postmasterOf(s.DataDir())
	if err := syscall.Kill(s.process.group, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the postmaster ends", func() bool { return !isPostgresAlive(p.pid) })
	if err := s.Close(); err != nil {
		t.Errorf("Close after that: %v", err)
	}
	if !gone(s.run.path) {
		t.Errorf("%s is there after Close", s.run.path)
	}
}

func TestClose_stopsAServerWithBusyClients(t *testing.T) {
	t.Parallel()
	s := mustStart(t, Config{Settings: fast})
	ended := make(chan error, 1)
	go func() {
		ended <- exec.Command("psql", "-Xc", "select pg_sleep(60)", s.URL()).Run()
	}()
	busy := "select count(*)::text from pg_stat_activity where query like 'select pg_sleep%'"
	if _, err := exec.LookPath("psql"); err == nil {
		eventually(t, "the client is busy", func() bool { return ask(t, s.URL(), busy) == "1" })
	}
	began := time.Now()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("Close took %v, want it not to wait for the query", took)
	}
	if err := <-ended; err == nil {
		t.Error("the client was not disconnected")
	}
}

func TestStart_sweepsWhatDeadProgramsLeft(t *testing.T) {
	parent := openDir(t)
	t.Setenv("TMPDIR", parent)
	who, err := serverAccount("")
	if err != nil {
		t.Fatal(err)
	}
	dead := filepath.Join(parent, runDirPrefix+"dead")
	if err := os.MkdirAll(filepath.Join(dead, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := who.own(dead); err != nil {
		t.Fatal(err)
	}
	living, err := newRunDir(who, false)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(parent, "not-ours")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	mustStart(t, Config{Settings: fast})
	if !gone(dead) {
		t.Errorf("%s is still there", dead)
	}
	if gone(living.path) || gone(other) {
		t.Error("a living program's directory or somebody else's was removed")
	}
	if err := living.remove(); err != nil {
		t.Error(err)
	}
}

func TestStart_worksForAnUnprivilegedUser(t *testing.T) {
	t.Parallel()
	c := startChild(t, "close", nobody(t), "HOME=/nonexistent")
	if c.Error != "" {
		t.Fatal(c.Error)
	}
	if got := ask(t, c.URL, "select 'in'"); got != "in" {
		t.Errorf("got %q, want in", got)
	}
	info, err := os.Stat(c.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	who, err := serverAccount("")
	if err != nil {
		t.Fatal(err)
	}
	if n := nobody(t); n != nil {
		who = n
	}
	if ownerOf(info) != who.uid {
		t.Errorf("the data belong to uid %d, want %d", ownerOf(info), who.uid)
	}
	if _, err := c.input.Write([]byte("go\n")); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Wait(); err != nil {
		t.Error(err)
	}
	assertNothingLeft(t, c)
}

// As root the home, the temporary and the working directory may all be closed
// to the server's user. For others they are their own; it must work too.
func TestStart_worksWhenOthersCannotEnterOurDirectories(t *testing.T) {
	closed := filepath.Join(openDir(t), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", closed)
	t.Setenv("TMPDIR", closed)
	t.Chdir(closed)
	s := mustStart(t, Config{Settings: fast})
	p, _ := postmasterOf(s.DataDir())
	info, err := os.Stat(s.DataDir())
	if err != nil {
		t.Fatal(err)
	}
	if ownerOf(info) == 0 {
		t.Error("the data belong to root")
	}
	if os.Geteuid() == 0 && strings.HasPrefix(s.DataDir(), closed) {
		t.Errorf("the data are in %s, which the server's user cannot enter", s.DataDir())
	}
	owner, err := exec.Command("ps", "-o", "uid=", "-p", strconv.Itoa(p.pid)).Output()
	if err != nil || strings.TrimSpace(string(owner)) == "0" {
		t.Errorf("the postmaster's uid: %q, %v, want not 0", owner, err)
	}
}
