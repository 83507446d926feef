//go:build unix

package embedded

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

//go:embed supervise.sh
var superviseScript string

// stopping says how to stop a command.
type stopping struct {
	orphan syscall.Signal // for when this process, or the shell, is dead
	steps  []stopStep
}

// stopStep is a signal and the time that it gets to work.
type stopStep struct {
	signal syscall.Signal
	wait   time.Duration
}

// stopServer is the plan for a server: SIGINT disconnects the clients and
// writes everything down, SIGQUIT leaves that to the recovery at the next start.
func stopServer() stopping {
	return stopping{orphan: syscall.SIGQUIT, steps: []stopStep{
		{syscall.SIGINT, 10 * time.Second}, {syscall.SIGQUIT, immediateWait}, {syscall.SIGKILL, killedWait},
	}}
}

// stopInitdb is the plan for initdb, which is deaf to SIGINT and SIGQUIT while
// it tries settings. At SIGTERM it removes what it has made.
func stopInitdb() stopping {
	return stopping{orphan: syscall.SIGTERM, steps: []stopStep{
		{syscall.SIGTERM, 10 * time.Second}, {syscall.SIGKILL, killedWait},
	}}
}

const (
	// immediateWait is how long an immediate shutdown may take: PostgreSQL
	// kills what has not ended after five seconds.
	immediateWait = 6 * time.Second

	// killedWait is how long killed processes may take to disappear.
	killedWait = 2 * time.Second
)

// process is a command run under supervise.sh.
type process struct {
	plan    stopping
	group   int           // process group of the shell and its command
	orders  *os.File      // write end of the pipe: a signal number a line; closing it stops the command
	done    chan struct{} // closed when the shell has ended
	outcome error         // how it ended; valid after done
}

// supervise runs command as who, its output going to output. If this process
// dies, the command is stopped and the directory remove (if not empty) removed.
func supervise(who *account, output *os.File, plan stopping, remove string, command ...string) (*process, error) {
	pipe, orders, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	defer pipe.Close()
	args := append([]string{"-c", superviseScript, "sh", strconv.Itoa(int(plan.orphan)), remove}, command...)
	cmd := exec.Command("/bin/sh", args...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.ExtraFiles = []*os.File{pipe}
	cmd.Dir = "/" // the working directory may be closed to the server's user
	cmd.Env = serverEnv(os.Environ())
	// A group of its own keeps a terminal's Ctrl-C away from the server, so
	// that the program can finish its work with it first.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: who.credential}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("embedded: start %s: %w", command[0], err), orders.Close())
	}
	p := &process{plan: plan, group: cmd.Process.Pid, orders: orders, done: make(chan struct{})}
	go func() {
		p.outcome = cmd.Wait()
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			p.endOrphan()
		}
		close(p.done)
	}()
	return p, nil
}

// serverEnv is env without what would change the server's mind: PG* variables
// point it elsewhere, a locale translates the messages that we read.
func serverEnv(env []string) []string {
	var kept []string
	for _, entry := range env {
		if !strings.HasPrefix(entry, "PG") && !strings.HasPrefix(entry, "LC_ALL=") {
			kept = append(kept, entry)
		}
	}
	return append(kept, "LC_ALL=C")
}

// stop ends the command, gently at first, and waits for it.
func (p *process) stop() error {
	defer p.orders.Close()
	for _, step := range p.plan.steps {
		// It may have ended by itself: then nobody reads, which is fine.
		_, _ = fmt.Fprintf(p.orders, "%d\n", step.signal)
		if p.endsWithin(step.wait) {
			return nil
		}
	}
	_ = syscall.Kill(-p.group, syscall.SIGKILL) // the shell too; fails if nothing is left
	if !p.endsWithin(killedWait) {
		return fmt.Errorf("embedded: the server's processes (group %d) do not end", p.group)
	}
	return nil
}

func (p *process) endsWithin(wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
		return false
	}
}

// endOrphan ends the command when somebody has killed its shell, without which
// it would outlive this program.
func (p *process) endOrphan() {
	_ = syscall.Kill(-p.group, p.plan.orphan) // fails if nothing is left
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(immediateWait); time.Now().Before(deadline); <-tick.C {
		if err := syscall.Kill(-p.group, 0); errors.Is(err, syscall.ESRCH) {
			return
		}
	}
	_ = syscall.Kill(-p.group, syscall.SIGKILL)
}
