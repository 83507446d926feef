package idemtest

import (
	"fmt"
	"os"
	"testing"

	"github.com/idem-go/idem/internal/testdb"
)

// Main runs the tests, stops the server that they started and exits. It is for
// a package that has no TestMain of its own, and a package can do without: the
// server stops with the process.
//
//	func TestMain(m *testing.M) { idemtest.Main(m) }
func Main(m *testing.M) {
	status := m.Run()
	if err := Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = max(status, 1)
	}
	os.Exit(status)
}

// Stop stops the server that the tests of this process started, if they did. It
// is for a TestMain that goes on after the tests, for example to look for
// goroutines: while the server runs, one waits for its end. No test may run any
// more, nor later.
func Stop() error {
	if err := testdb.Stop(); err != nil {
		return fmt.Errorf("idemtest: the server did not stop: %w", err)
	}
	return nil
}
