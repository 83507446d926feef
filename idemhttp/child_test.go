package idemhttp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/idemhttp"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The environment of a child: the database it serves, and the point at which it
// stops for good.
const (
	childDatabase = "IDEM_TEST_CHILD_DATABASE"
	childPoint    = "IDEM_TEST_CHILD_POINT"
	childLimit    = "IDEM_TEST_CHILD_LIMIT" // of its route; empty means the default
	childLease    = "IDEM_TEST_CHILD_LEASE" // of its route; empty means none
)

// The points at which a child says so and goes no further until the parent says go.
const (
	pointNone     = ""
	pointEntered  = "entered"  // the handler has begun, and done nothing yet
	pointInserted = "inserted" // the handler has written its row
	pointAnswer   = "answer"   // the guard is about to send the status line
)

// serveAsChild serves the article's handler on a loopback port until its parent
// is gone. It says how each request has ended.
func serveAsChild(url, point string) int {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return fail(err)
	}
	db, err := idem.Open(ctx, pool, idem.Config{Observe: func(_ context.Context, e idem.Event) {
		if e.Kind == idem.EventRequest {
			fmt.Println("ended", e.Outcome)
		}
	}})
	if err != nil {
		return fail(err)
	}
	guard, err := idemhttp.New(db, idemhttp.Config{Scope: bearer})
	if err != nil {
		return fail(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fail(err)
	}
	limit, _ := time.ParseDuration(os.Getenv(childLimit)) // none is zero
	lease, _ := time.ParseDuration(os.Getenv(childLease))
	stop := &stop{point: point, said: make(chan struct{}, 1)}
	var runs atomic.Int64
	create := createOrder(&runs)
	handler := guard.Route(idemhttp.Route{Name: "POST /orders", Limit: limit, Lease: lease})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stop.at(pointEntered)
		create(w, r)
		stop.at(pointInserted)
	}))
	go func() {
		_ = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			handler.ServeHTTP(&stopper{ResponseWriter: w, stop: stop}, r)
		}))
	}()
	fmt.Println("listens", listener.Addr())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); { // it ends when the parent does
		stop.said <- struct{}{}
	}
	return 0
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// stop is where a child stops.
type stop struct {
	point string
	said  chan struct{} // the parent has said go
}

// at tells the parent that the point is reached and waits for its word.
func (s *stop) at(here string) {
	if here == s.point {
		fmt.Println("reached", here)
		<-s.said
	}
}

// stopper is the connection's writer, outside the guard.
type stopper struct {
	http.ResponseWriter
	stop *stop
}

func (s *stopper) WriteHeader(status int) {
	s.stop.at(pointAnswer)
	s.ResponseWriter.WriteHeader(status)
}

// child is a server in a process of its own.
type child struct {
	t      testing.TB
	cmd    *exec.Cmd
	stdin  io.Writer
	lines  *bufio.Scanner
	base   string
	client *http.Client
	killed bool
}

// startChild starts a server on the database of url. It is killed when the test
// ends, or after a minute.
func startChild(t testing.TB, url, point string, env ...string) *child {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(append(os.Environ(), childDatabase+"="+url, childPoint+"="+point), env...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe() // open for as long as we live
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, cmd: cmd, stdin: stdin, lines: bufio.NewScanner(stdout),
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	t.Cleanup(c.kill)
	c.base = "http://" + c.await("listens ")
	return c
}

// await reads the child's next line, which begins with word, and returns the
// rest of it.
func (c *child) await(word string) string {
	c.t.Helper()
	if !c.lines.Scan() {
		c.t.Fatalf("the child ended without saying %q: %v", word, c.lines.Err())
	}
	rest, ok := strings.CutPrefix(c.lines.Text(), word)
	if !ok {
		c.t.Fatalf("the child said %q, want %q", c.lines.Text(), word)
	}
	return rest
}

// kill ends the child as a power cut would.
func (c *child) kill() {
	if c.killed {
		return
	}
	c.killed = true
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait() // it reports the kill
}

func (c *child) send(s sending) reply {
	return transmit(context.Background(), c.client, c.base, s)
}

// begin sends s and does not wait for the answer.
func (c *child) begin(s sending) <-chan reply {
	got := make(chan reply, 1)
	go func() { got <- c.send(s) }()
	return got
}

// goOn lets a child go on from its point.
func (c *child) goOn() {
	c.t.Helper()
	if _, err := io.WriteString(c.stdin, "go\n"); err != nil {
		c.t.Error(err)
	}
}

// signal stops and continues the child.
func (c *child) signal(s os.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Error(err)
	}
}
