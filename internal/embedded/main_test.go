//go:build unix

package embedded

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// childVariable names what the test binary does instead of testing, when a
// test runs it as a program that starts a server.
const childVariable = "IDEM_EMBEDDED_CHILD"

func TestMain(m *testing.M) {
	if act := os.Getenv(childVariable); act != "" {
		childMain(act)
		return
	}
	goleak.VerifyTestMain(m)
}

// childReport is what a child says on its standard output.
type childReport struct {
	URL     string
	DataDir string
	RunDir  string
	Pid     int // of the postmaster
	Error   string
}

// childMain starts a server, reports, waits for a line, and ends as told.
func childMain(act string) {
	s, err := Start(context.Background(), Config{DataDir: os.Getenv("IDEM_EMBEDDED_DATA")})
	if err != nil {
		report(childReport{Error: err.Error()})
		os.Exit(1)
	}
	p, _ := postmasterOf(s.DataDir())
	report(childReport{URL: s.URL(), DataDir: s.DataDir(), RunDir: s.run.path, Pid: p.pid})
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	switch act {
	case "close":
		if err := s.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "panic":
		panic("as told")
	case "exit":
		os.Exit(3)
	}
}

func report(r childReport) {
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		panic(err)
	}
}

// child is the test binary running as a program with a server.
type child struct {
	childReport
	cmd   *exec.Cmd
	input io.WriteCloser
}

// startChild runs the test binary as the account (nil: as we are) until it has
// started a server, or failed to.
func startChild(t *testing.T, act string, who *account, env ...string) *child {
	t.Helper()
	c, output := launchChild(t, act, who, env...)
	if err := json.NewDecoder(output).Decode(&c.childReport); err != nil {
		t.Fatalf("the child reports nothing: %v", err)
	}
	return c
}

// launchChild runs the test binary and returns its standard output.
func launchChild(t *testing.T, act string, who *account, env ...string) (*child, io.Reader) {
	t.Helper()
	c := &child{cmd: exec.Command(testBinary(t))}
	c.cmd.Env = append(os.Environ(), append(env, childVariable+"="+act)...)
	c.cmd.Dir = "/"
	if who != nil {
		c.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who.credential}
	}
	var err error
	if c.input, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	output, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill() // an error says that it has ended
		_ = c.cmd.Wait()
	})
	return c, output
}

// testBinary copies the test binary to where other users can run it.
func testBinary(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(openDir(t), "embedded.test")
	writeProgram(t, path, content)
	return path
}

// writeProgram writes a program while nobody forks (see writeEntry).
func writeProgram(t *testing.T, path string, content []byte) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, content, 0o755); err != nil {
		t.Fatal(err)
	}
}

// openDir makes a directory that everybody can enter, even if t.TempDir, which
// follows TMPDIR, is closed.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "idem-embedded-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// nobody is an unprivileged account other than the server's, if we are root;
// else it is nil, for ourselves.
func nobody(t *testing.T) *account {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	who, err := accountOf(u)
	if err != nil {
		t.Fatal(err)
	}
	return who
}

// eventually waits until what holds, for ten seconds at most.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
		<-tick.C
	}
}

func gone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, os.ErrNotExist)
}

// commandsNaming lists the command lines of processes that contain text.
func commandsNaming(t *testing.T, text string) []string {
	t.Helper()
	output, err := exec.Command("ps", "-A", "-o", "pid=,args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(output)) {
		if strings.Contains(line, text) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}
