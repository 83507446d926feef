package queue_test

import (
	"os"
	"testing"

	"github.com/idem-go/idem/internal/pgtest"
)

// childVariable makes this test binary a process that a test starts and kills: it names
// one of children.
const childVariable = "IDEM_TEST_QUEUE_CHILD"

// children are what such a process does; what it returns is its exit status.
var children = map[string]func() int{}

func TestMain(m *testing.M) {
	if child := children[os.Getenv(childVariable)]; child != nil {
		os.Exit(child())
	}
	pgtest.Main(m)
}
