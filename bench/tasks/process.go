package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// order is what a subject's process is told to do, one line each.
type order struct {
	Do    string `json:"do"`
	N     int    `json:"n,omitempty"`
	Limit int    `json:"limit_ms,omitempty"`
	File  string `json:"file,omitempty"`
}

// What a process can be told.
const (
	doMigrate = "migrate"
	doReady   = "ready" // nothing: connections are made, CPU time is told
	doSingle  = "single"
	doMany    = "many"
	doPaced   = "paced"
	doWork    = "work"
	doAwait   = "await"
	doStop    = "stop"
	// Not in Node:
	doProfile  = "profile"
	doProfiled = "profiled"
)

// answer is what it answers, one line each.
type answer struct {
	Error   string    `json:"error,omitempty"`
	Seconds float64   `json:"seconds"` // that it took
	CPU     int64     `json:"cpu_us"`  // that the process has used so far
	Handled int       `json:"handled"` // handlers run so far
	Waits   []float64 `json:"waits,omitempty"`
}

// process is a subject that runs in a process of its own, as a client that enqueues or
// as a worker.
type process struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
}

// startProcess starts a program and tells it its place. It ends when its input does, so
// also when this process dies.
func startProcess(p place, program string, args ...string) (*process, error) {
	cmd := exec.Command(program, args...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	started := &process{name: p.Subject, cmd: cmd, in: in, out: bufio.NewReader(out)}
	if _, err := started.exchange(p, startLimit); err != nil {
		started.end()
		return nil, fmt.Errorf("start %s: %w", p.Subject, err)
	}
	return started, nil
}

const (
	// startLimit bounds the start of a process.
	startLimit = 30 * time.Second
	// slack is what an order may take beyond the time that it is given.
	slack = 60 * time.Second
)

// tell has an order done and returns what it came to.
func (p *process) tell(o order) (answer, error) {
	a, err := p.exchange(o, time.Duration(o.Limit)*time.Millisecond+slack)
	if err != nil {
		err = fmt.Errorf("%s: %s: %w", p.name, o.Do, err)
	}
	return a, err
}

// exchange sends a line and reads one. A process that is silent for longer than limit is
// killed.
func (p *process) exchange(line any, limit time.Duration) (a answer, err error) {
	content, err := json.Marshal(line)
	if err != nil {
		return a, err
	}
	silent := time.AfterFunc(limit, func() { _ = p.cmd.Process.Kill() })
	defer silent.Stop()
	if _, err := p.in.Write(append(content, '\n')); err != nil {
		return a, err
	}
	answered, err := p.out.ReadBytes('\n')
	if err != nil {
		return a, fmt.Errorf("no answer within %v: %w", limit, err)
	}
	if err := json.Unmarshal(answered, &a); err != nil {
		return a, fmt.Errorf("%w: %q", err, answered)
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}

// kill ends the process as a crash does, by SIGKILL.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	p.end()
}

// end waits for the end of the process, for which the end of its input is the reason.
func (p *process) end() {
	p.in.Close()
	late := time.AfterFunc(startLimit, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	_ = p.cmd.Wait() // what it did has been counted by then
}
