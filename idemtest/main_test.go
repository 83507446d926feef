package idemtest_test

import (
	"flag"
	"testing"

	"github.com/idem-go/idem/idemtest"
	"github.com/idem-go/idem/internal/pgtest"
)

// TestMain is pgtest's, which also looks for goroutines that are left behind.
func TestMain(m *testing.M) {
	flag.Parse()
	if !*everyPoint {
		idemtest.Sample(3)
	}
	pgtest.Main(m)
}
