package storm

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

const (
	// startLimit bounds a child's way to its first line, on a busy machine.
	startLimit = 30 * time.Second
	// stopLimit bounds how long a child that was told to end may finish its work.
	stopLimit = 10 * time.Second
	// maxComplaints bounds what is kept of a child's stderr, in bytes.
	maxComplaints = 4 << 10
)

// child is a process of a storm's. Its first line on stdin are its orders, which
// may hold a password and so are on no command line; the end of stdin is its own
// end, so that it does not outlive us however we die.
type child struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr *complaints
	gone   chan struct{} // closed when it has ended and all of its output was read
}

// startChild starts cmd, gives it its orders and waits for its first line, which
// is decoded into ready. Every later line goes to read, which returns an error at
// their end. If ctx ends before the first line, so does the process.
func startChild(ctx context.Context, cmd *exec.Cmd, orders, ready any, read func(*json.Decoder) error) (*child, error) {
	c := &child{cmd: cmd, stderr: &complaints{}, gone: make(chan struct{})}
	var err error
	if c.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("storm: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("storm: %w", err)
	}
	cmd.Stderr = c.stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("storm: start a process: %w", err)
	}
	lines := json.NewDecoder(stdout)
	starting, cancel := context.WithTimeout(ctx, startLimit)
	late := context.AfterFunc(starting, func() { _ = cmd.Process.Kill() })
	err = json.NewEncoder(c.stdin).Encode(orders)
	if err == nil {
		err = lines.Decode(ready)
	}
	late()
	cancel()
	go func() {
		for read(lines) == nil {
			continue
		}
		_, _ = io.Copy(io.Discard, stdout) // a line that cannot be read is not the last
		_ = cmd.Wait()                     // how it ended is told by who ended it
		close(c.gone)
	}()
	if err != nil {
		c.kill()
		return nil, fmt.Errorf("storm: a process did not start: %w%s", err, c.stderr)
	}
	return c, nil
}

// kill ends the process with SIGKILL and waits until it is gone.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // an error says that it has ended
	<-c.gone
	_ = c.stdin.Close()
}

// stop lets the process finish what it does, for a while.
func (c *child) stop() {
	_ = c.stdin.Close() // it has ended, if this fails
	timer := time.NewTimer(stopLimit)
	defer timer.Stop()
	select {
	case <-c.gone:
	case <-timer.C:
		c.kill()
	}
}

func (c *child) hasEnded() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// complaints keeps the end of what a child writes to stderr.
type complaints struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (c *complaints) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text = append(c.text, p...)
	c.text = c.text[max(0, len(c.text)-maxComplaints):]
	return len(p), nil
}

// String is what there is to add to an error's text.
func (c *complaints) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if text := strings.TrimSpace(string(c.text)); text != "" {
		return ": " + text
	}
	return ""
}
