package idemtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"

	"github.com/idem-go/idem/internal/testdb"
)

// The environment of a child: the test that it is to run, the database on which that
// test's handler is to be served, and where it finds the system outside.
const (
	childTest     = "IDEMTEST_CHILD_TEST"
	childDatabase = "IDEMTEST_CHILD_DATABASE"
	childOutside  = "IDEMTEST_CHILD_OUTSIDE"
)

// listens is what a child says when it serves, with its address.
const listens = "idemtest: listens on "

// KillProcess is KillEverywhere with the process that runs the handler being
// killed (SIGKILL) when it has come to the point, as by a power cut: once so that
// the message is lost, once so that it arrives afterwards. The repeats are served
// by this process, and so is Kill.Outside.
//
// For each point it starts the test binary again to run this very test, which
// must therefore come here before it does anything else: there, KillProcess serves
// the handler and does not return. Nothing has to be done in TestMain. A point
// takes a start of the binary longer than in KillEverywhere.
func KillProcess(t testing.TB, k Kill) {
	t.Helper()
	if os.Getenv(childTest) == t.Name() {
		if err := k.valid(); err == nil {
			err = k.serveAsChild(withOutside(t.Context(), os.Getenv(childOutside)), os.Getenv(childDatabase))
			fmt.Fprintln(os.Stderr, "idemtest: the child:", err)
		}
		os.Exit(1)
	}
	k.everywhere(t, processPoints, func(ctx context.Context, want outcome, p point) error {
		return k.killAt(ctx, t.Name(), want, p)
	})
}

// processPoints are the points at which KillProcess kills; the tests of this package take
// fewer of them.
var processPoints = killPoints

// serveAsChild serves the handler until the parent is gone. It returns what went
// wrong.
func (k Kill) serveAsChild(ctx context.Context, url string) error {
	if k.isTask() {
		return k.workAsChild(ctx, url)
	}
	pool, err := testdb.Connect(ctx, url)
	if err != nil {
		return err
	}
	handler, err := k.Handler(ctx, pool)
	if err != nil {
		return fmt.Errorf("the handler: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- http.Serve(listener, handler) }()
	fmt.Println("\n" + listens + listener.Addr().String())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // it ends when the parent does
		failed <- errors.New("the parent has gone")
	}()
	return <-failed
}

// killAt is one point of KillProcess.
func (k Kill) killAt(ctx context.Context, test string, want outcome, p point) (err error) {
	if k.isTask() {
		return k.killTaskAt(ctx, test, want, p)
	}
	l, err := k.lay(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.end()) }()
	c, err := startChild(ctx, test, l.proxy.URL(), l.address())
	if err != nil {
		return err
	}
	l.finally(c.kill)
	trap := p.hold(l)
	if err := c.dieAt(ctx, trap, k.Request); err != nil {
		return err
	}
	trap.bury()
	if err := l.serve(ctx, l.database.URL()); err != nil {
		return err
	}
	return l.verify(ctx, nil, want)
}

// dieAt sends the child a request and kills the child when all stops at the trap. A
// request that is answered has not come there.
func (c *child) dieAt(ctx context.Context, t trap, request func() *http.Request) error {
	var answer Answer
	var lost error
	over := make(chan struct{})
	go func() {
		defer close(over)
		answer, lost = newClient(c.address, request).send(ctx)
	}()
	came := visited(t, over)
	err := c.kill()
	<-over
	switch {
	case err != nil:
		return err
	case !came || lost == nil:
		return fmt.Errorf("%w; the answer was %v", errNotVisited, answer)
	}
	return nil
}
