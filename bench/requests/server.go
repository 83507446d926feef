package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// server is a subject that runs in a process of its own.
type server struct {
	subject
	addr string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
}

// startServer runs this program once more, as the server. It ends when its input
// does, so also when this process dies.
func startServer(s subject, database string, pool int, redis string) (*server, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, serveArgument, s.name, database, strconv.Itoa(pool), redis)
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
	started := &server{subject: s, cmd: cmd, in: in, out: bufio.NewReader(out)}
	started.addr, err = started.line()
	if err != nil {
		started.stop()
		return nil, fmt.Errorf("start %s: %w", s.name, err)
	}
	return started, nil
}

func (s *server) line() (string, error) {
	line, err := s.out.ReadString('\n')
	return strings.TrimSpace(line), err
}

// tell sends a line and returns the server's.
func (s *server) tell(line string) (string, error) {
	if _, err := fmt.Fprintln(s.in, line); err != nil {
		return "", fmt.Errorf("%s: %w", s.name, err)
	}
	answered, err := s.line()
	if err != nil {
		return "", fmt.Errorf("%s: %w", s.name, err)
	}
	return answered, nil
}

// cpu is the CPU time that the server's process has used.
func (s *server) cpu() (time.Duration, error) {
	answered, err := s.tell("cpu")
	if err != nil {
		return 0, err
	}
	nanoseconds, err := strconv.ParseInt(answered, 10, 64)
	return time.Duration(nanoseconds), err
}

// stop ends the process and waits for its end.
func (s *server) stop() {
	s.in.Close()
	_ = s.cmd.Wait() // what it did has been counted by then
}
