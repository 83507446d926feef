package testdb

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// poolerVariable names a program that puts a connection pooler in front of the
// private server, such as scripts/pgbouncer.
const poolerVariable = "IDEM_TEST_POOLER"

// poolerMode is how pgx has to talk through a pooler that gives a connection's
// transactions to different sessions, and knows nothing of prepared statements.
const poolerMode = "default_query_exec_mode=exec"

// pooler is a process between the tests and the server. It ends when its stdin
// does, so also with this process.
type pooler struct {
	cmd   *exec.Cmd
	stdin io.Closer
	port  int
}

// startPooler starts the program in front of the server of a URL.
func startPooler(program, server string) (*pooler, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the pooler: %w", err)
	}
	p := &pooler{cmd: cmd, stdin: stdin}
	password, _ := u.User.Password()
	_, _ = fmt.Fprintln(stdin, u.Port(), u.User.Username(), password) // if it is gone, it says nothing either
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	if p.port, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
		return nil, errors.Join(fmt.Errorf("the pooler %s did not start: it said %q", program, line), p.stop())
	}
	return p, nil
}

// url is where a database of the server is found through the pooler.
func (p *pooler) url(direct string) string {
	u, err := url.Parse(direct)
	if err != nil {
		panic("testdb: the server's URL was parsed before: " + err.Error())
	}
	u.Host = "127.0.0.1:" + strconv.Itoa(p.port)
	u.RawQuery += "&" + poolerMode
	return u.String()
}

// stop ends the pooler and waits for it.
func (p *pooler) stop() error {
	_ = p.stdin.Close() // it cannot fail in a way that Wait does not tell
	return p.cmd.Wait()
}
