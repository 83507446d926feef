package bank

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"
)

const (
	// startLimit bounds a process's way to its first line, on a busy machine.
	startLimit = 30 * time.Second
	// stopLimit bounds how long a process that was told to end may take.
	stopLimit = shutdownLimit + 5*time.Second
)

// ready is the only line that a bank's process writes.
type ready struct {
	Addr string `json:"addr"` // where it listens, host:port
}

// Child is the life of a bank's process: it serves, says on out where, and ends
// with ctx or with in, which ends when the process that started it is gone.
func Child(ctx context.Context, in io.Reader, out io.Writer, cfg Config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in) // its end says all
		cancel()
	}()
	var unheard error
	err := Serve(ctx, cfg, func(addr string) {
		if err := json.NewEncoder(out).Encode(ready{addr}); err != nil {
			unheard = fmt.Errorf("bank: say where it listens: %w", err)
			cancel()
		}
	})
	return errors.Join(unheard, err)
}

// Process is a bank in a process of its own, which can be killed.
type Process struct {
	URL   string
	Addr  string // host:port, for the Config.Listen of the one that is started in its place
	cmd   *exec.Cmd
	stdin io.Closer
	gone  chan struct{} // closed when it has ended
	ended error         // how, once gone is closed
}

// StartProcess starts cmd, whose main must call Child, and waits until it
// listens. Its error holds what the process wrote to stderr, unless cmd has one.
func StartProcess(cmd *exec.Cmd) (*Process, error) {
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("bank: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("bank: %w", err)
	}
	var complaints bytes.Buffer // read only when the process has ended
	if cmd.Stderr == nil {
		cmd.Stderr = &complaints
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("bank: start a process: %w", err)
	}
	p := &Process{cmd: cmd, stdin: stdin, gone: make(chan struct{})}
	late := time.AfterFunc(startLimit, func() { _ = cmd.Process.Kill() })
	var r ready
	err = json.NewDecoder(stdout).Decode(&r)
	late.Stop()
	go func() {
		_, _ = io.Copy(io.Discard, stdout)
		p.ended = cmd.Wait()
		close(p.gone)
	}()
	if err != nil {
		p.Kill()
		return nil, fmt.Errorf("bank: a process did not start: %w: %s", err, bytes.TrimSpace(complaints.Bytes()))
	}
	p.Addr, p.URL = r.Addr, "http://"+r.Addr
	return p, nil
}

// Kill ends the process with SIGKILL, in the middle of whatever it does, and
// waits until it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // an error says that it has ended
	<-p.gone
	_ = p.stdin.Close()
}

// Stop lets the process finish what is under way. The error says how it ended,
// if not well.
func (p *Process) Stop() error {
	_ = p.stdin.Close() // it has ended, if this fails
	timer := time.NewTimer(stopLimit)
	defer timer.Stop()
	select {
	case <-p.gone:
	case <-timer.C:
		p.Kill()
	}
	if p.ended != nil {
		return fmt.Errorf("bank: the process ended: %w", p.ended)
	}
	return nil
}
