package idemtest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// childLimit bounds a child's life, most of which is its start.
const childLimit = time.Minute

// child is this test binary in a process of its own, serving a test's handler.
type child struct {
	address string
	command *exec.Cmd
	stdin   io.WriteCloser // open for as long as we live
	drained chan struct{}  // closed when nobody reads any more what it says
	cancel  context.CancelFunc
	killed  bool
}

// startChild starts a child that serves the handler of test on the database of
// url, with the system outside at outside.
func startChild(ctx context.Context, test, url, outside string) (*child, error) {
	ctx, cancel := context.WithTimeout(ctx, childLimit)
	c := &child{cancel: cancel, drained: make(chan struct{})}
	stdout, err := c.start(ctx, test, url, outside)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("the child process did not start: %w", err)
	}
	said, err := c.listen(stdout)
	go func() {
		_, _ = io.Copy(io.Discard, stdout) // it must not block on a full pipe
		close(c.drained)
	}()
	if err != nil {
		_ = c.kill() // it may have ended
		return nil, fmt.Errorf("the child process did not serve (KillProcess must be the first thing that its test does): %w; it said:\n%s%s",
			err, said, c.command.Stderr)
	}
	return c, nil
}

func (c *child) start(ctx context.Context, test, url, outside string) (stdout io.Reader, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c.command = exec.CommandContext(ctx, program, "-test.run="+exactly(test), "-test.count=1")
	c.command.Env = append(os.Environ(), childTest+"="+test, childDatabase+"="+url, childOutside+"="+outside)
	c.command.Stderr = &bytes.Buffer{}
	c.command.WaitDelay = time.Second // it may have started others, who keep stderr
	if c.stdin, err = c.command.StdinPipe(); err != nil {
		return nil, err
	}
	if stdout, err = c.command.StdoutPipe(); err != nil {
		return nil, err
	}
	return stdout, c.command.Start()
}

// listen waits until the child says where it listens, and returns what else it
// said.
func (c *child) listen(stdout io.Reader) (string, error) {
	var said strings.Builder
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if address, ok := strings.CutPrefix(lines.Text(), listens); ok {
			c.address = address
			return said.String(), nil
		}
		fmt.Fprintln(&said, lines.Text())
	}
	return said.String(), errors.Join(errors.New("it ended"), lines.Err())
}

// kill ends the child as a power cut would, and waits for its end.
func (c *child) kill() error {
	if c.killed {
		return nil
	}
	c.killed = true
	err := c.command.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = errors.New("the child process ended by itself")
	}
	_ = c.command.Wait() // it reports the kill
	<-c.drained
	c.cancel()
	return errors.Join(err, ignoreClosed(c.stdin.Close()))
}

func ignoreClosed(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return nil // Wait has closed it
	}
	return err
}

// exactly is the pattern of go test for one test or subtest.
func exactly(test string) string {
	parts := strings.Split(test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}
