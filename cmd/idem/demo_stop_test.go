//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/idem-go/idem/internal/pgtest"
)

// markVariable marks a demo and, since they inherit it, all processes that it
// starts.
const markVariable = "IDEM_TEST_DEMO_MARK"

// marked are the command lines of the processes that carry a mark, those among
// them that have ended and were not waited for left out.
func marked(mark string) (lines []string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well formed
	for _, dir := range dirs {
		environ, err := os.ReadFile(dir + "/environ")
		if err != nil || !bytes.Contains(environ, []byte(markVariable+"="+mark+"\x00")) {
			continue // gone, or somebody else's
		}
		line, err := os.ReadFile(dir + "/cmdline")
		if err == nil && len(line) > 0 {
			lines = append(lines, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return lines
}

// until polls for a minute.
func until(holds func() bool) bool {
	deadline := time.Now().Add(time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if holds() {
			return true
		}
		if time.Now().After(deadline) {
			break
		}
	}
	return false
}

// stormyDemo starts idem demo as a process in a group of its own, as a terminal
// does, and waits until its storm has started all of its processes.
func stormyDemo(t *testing.T, mark string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"demo", "--listen", "127.0.0.1:0", "--storm", "20000", "--exit"}, args...)...)
	cmd.Env = append(os.Environ(), markVariable+"="+mark)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdout = io.Discard
	var stderr watched
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // an error says that it has ended
	if !until(func() bool {
		all := strings.Join(marked(mark), "\n")
		return strings.Count(all, " demo-client") == 4 && strings.Contains(all, " demo-shop") && strings.Contains(all, " demo-bank") &&
			(strings.Contains(all, "postgres") || len(args) > 0)
	}) {
		t.Fatalf("the storm has not started after a minute; there are\n%s\n%s", strings.Join(marked(mark), "\n"), stderr.String())
	}
	for _, line := range marked(mark) {
		if strings.Contains(line, " demo-") && strings.Contains(line, "://") {
			t.Errorf("a database's URL is on a command line: %s", line)
		}
	}
	return cmd
}

// However a demo is ended in the middle of its storm, nothing of it stays: neither
// shops nor clients nor PostgreSQL. A terminal's Ctrl-C reaches all processes at
// once, kill only the demo itself.
func TestDemo_leavesNoProcessHoweverItsStormEnds(t *testing.T) {
	for _, c := range []struct {
		name   string
		signal syscall.Signal
		group  bool
	}{
		{"Ctrl-C", syscall.SIGINT, true},
		{"SIGTERM", syscall.SIGTERM, false},
		{"SIGKILL", syscall.SIGKILL, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			mark := fmt.Sprint(os.Getpid(), "-", strconv.Itoa(int(c.signal)))
			cmd := stormyDemo(t, mark)
			pid := cmd.Process.Pid
			if c.group {
				pid = -pid
			}
			if err := syscall.Kill(pid, c.signal); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // it was told to end
			if code := cmd.ProcessState.ExitCode(); c.signal != syscall.SIGKILL && code != exitFailed {
				t.Errorf("got exit code %d, want 1: %s", code, cmd.Stderr)
			}
			if !until(func() bool { return len(marked(mark)) == 0 }) {
				t.Errorf("processes are left:\n%s", strings.Join(marked(mark), "\n"))
			}
		})
	}
}

// A bank whose log is with no data directory takes the log along.
func TestDemo_leavesNoLogOfTheBank(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("TMPDIR", dir)
			mark := fmt.Sprint(os.Getpid(), "-log-", int(signal))
			cmd := stormyDemo(t, mark, "--database-url", pgtest.Empty(t))
			if found, _ := filepath.Glob(filepath.Join(dir, "idem-bank-*", demoBankLog)); len(found) != 1 {
				t.Errorf("got the logs %q, want one in %s", found, dir)
			}
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // it was told to end
			if !until(func() bool { return len(marked(mark)) == 0 }) {
				t.Errorf("processes are left:\n%s", strings.Join(marked(mark), "\n"))
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("got %v left behind, %v", left, err)
			}
		})
	}
}
