package idemhttp_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// crashPatience bounds every wait of the matrix but the next.
	crashPatience = 30 * time.Second
	// crashLife bounds a process that is to be crashed.
	crashLife = 2 * time.Minute
)

// crashGroup is one process that is crashed, at one step and in one way, with a cell
// for each line-up.
type crashGroup struct {
	*crashMatrix
	step  crashStep
	fault crashFault
	bank  *crashBank // its own, where the bank has to be frozen
	cells []*crashCell

	cmd    *exec.Cmd
	stdin  io.WriteCloser
	gone   chan struct{} // closed when it has ended
	killed bool
}

func (m *crashMatrix) newGroup(step crashStep, f crashFault, round int) *crashGroup {
	g := &crashGroup{crashMatrix: m, step: step, fault: f, bank: m.bank, gone: make(chan struct{})}
	for _, l := range crashLineups {
		name := fmt.Sprintf("%s.%s.%s.%d", l.name, step.name, strings.ReplaceAll(f.name, " ", "-"), round)
		g.cells = append(g.cells, newCrashCell(g, l, name))
	}
	return g
}

func (g *crashGroup) String() string { return cellName(g.step, g.fault) }

func (g *crashGroup) errorf(format string, args ...any) {
	g.t.Errorf("%s: %s", g, fmt.Sprintf(format, args...))
}

// try brings the process to its step, crashes it and judges what comes of it.
func (g *crashGroup) try() {
	defer g.end()
	if err := g.start(); err != nil {
		g.errorf("%v", err)
		return
	}
	g.each((*crashCell).begin)
	g.each((*crashCell).reach)
	g.each((*crashCell).crowd)
	g.fault.strike(g)
	g.each((*crashCell).judge)
}

// each does something in all cells at once.
func (g *crashGroup) each(do func(*crashCell)) {
	var all sync.WaitGroup
	for _, c := range g.cells {
		all.Go(func() { do(c) })
	}
	all.Wait()
}

// start starts the process, and the bank that it is to find frozen.
func (g *crashGroup) start() error {
	if g.step.name == stepCallReceived {
		var err error
		if g.bank, err = openCrashBank(filepath.Join(g.t.TempDir(), "log")); err != nil {
			return err
		}
		if err := g.bank.freeze(); err != nil {
			return err
		}
	}
	orders, err := json.Marshal(crashOrders{Database: g.url, Bank: g.bank.at(), Step: g.step.name})
	if err != nil {
		return err
	}
	g.cmd = exec.Command(os.Args[0])
	g.cmd.Env = append(os.Environ(), crashVariable+"="+string(orders))
	g.cmd.Stderr = os.Stderr
	if g.stdin, err = g.cmd.StdinPipe(); err != nil {
		return err
	}
	stdout, err := g.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := g.cmd.Start(); err != nil {
		return err
	}
	life := time.AfterFunc(crashLife, func() { _ = g.cmd.Process.Kill() })
	lines := bufio.NewScanner(stdout)
	if !lines.Scan() || !g.listens(lines.Text()) {
		err = errors.New("the process did not start")
	}
	go func() {
		for lines.Scan() {
			g.heard(lines.Text())
		}
		_ = g.cmd.Wait() // how it ends is asked when it is told to
		life.Stop()
		close(g.gone)
	}()
	return err
}

// listens reads the process's first line.
func (g *crashGroup) listens(line string) bool {
	var at map[string]string
	rest, ok := strings.CutPrefix(line, "listens ")
	if !ok || json.Unmarshal([]byte(rest), &at) != nil {
		return false
	}
	for _, c := range g.cells {
		c.base = "http://" + at[c.lineup.name]
	}
	return true
}

// heard takes in another one.
func (g *crashGroup) heard(line string) {
	word, name, _ := strings.Cut(line, " ")
	for _, c := range g.cells {
		switch {
		case c.lineup.name != name:
		case word == "reached":
			close(c.reached)
		case word == "arrived":
			close(c.arrived)
		}
	}
}

// end ends the process, if it is still there, and the bank.
func (g *crashGroup) end() {
	if g.cmd != nil && g.cmd.Process != nil {
		_ = g.stdin.Close()
		select {
		case <-g.gone:
		case <-time.After(crashPatience):
			g.errorf("the process did not end")
			g.kill()
		}
		if state := g.cmd.ProcessState; !g.killed && !state.Success() {
			g.errorf("the process ended with %v", state)
		}
	}
	if g.bank != nil && g.bank != g.crashMatrix.bank {
		g.bank.Kill()
	}
}

func (g *crashGroup) kill() {
	g.killed = true
	_ = g.cmd.Process.Kill()
	<-g.gone
}

// tell gives the process its order: it goes on.
func (g *crashGroup) tell(order string) {
	if _, err := io.WriteString(g.stdin, order+"\n"); err != nil {
		g.errorf("tell it to %s: %v", order, err)
	}
}

// struck lets a frozen bank go on, once the fault has come first.
func (g *crashGroup) struck() {
	if g.bank == g.crashMatrix.bank {
		return
	}
	if err := g.bank.thaw(); err != nil {
		g.errorf("thaw the bank: %v", err)
	}
}

// murder kills the process. Everything that it was about to say is lost.
func (g *crashGroup) murder() {
	g.kill()
	g.struck()
	g.each((*crashCell).settle)
}

// freeze stops the process until its clients have an answer from another, and lets
// it go on with whatever it was about to do.
func (g *crashGroup) freeze() {
	g.signal(syscall.SIGSTOP)
	g.struck()
	g.each((*crashCell).settleElsewhere)
	g.signal(syscall.SIGCONT)
	g.tell(orderGo)
	g.each((*crashCell).hear)
}

func (g *crashGroup) signal(s os.Signal) {
	if err := g.cmd.Process.Signal(s); err != nil {
		g.errorf("%v: %v", s, err)
	}
}

// cut cuts the connection that the step is on: to the database, to the bank or to the
// client. Where the step is in the handler, it is every connection to the database.
func (g *crashGroup) cut() {
	g.tell(orderCut)
	g.struck()
	g.each((*crashCell).settle)
}

// desert has the clients go away and repeat at the other process, while theirs goes
// on only when they have been told there that the key is in flight, for longer than
// the lease; or when they have an answer.
func (g *crashGroup) desert() {
	g.each((*crashCell).leave)
	g.struck()
	settled := make(chan struct{})
	go func() {
		g.each((*crashCell).settle)
		close(settled)
	}()
	g.each((*crashCell).isHeld)
	g.tell(orderGo)
	<-settled
}

// swallow makes the bank unreachable, in both directions and without a word, until a
// call has been given up.
func (g *crashGroup) swallow() {
	g.tell(orderHole)
	g.struck()
	g.each((*crashCell).settle)
}
