package idemclient_test

import (
	"os"
	"testing"

	"github.com/idem-go/idem/internal/pgtest"
)

// TestMain runs the tests, or is the client or the shop that one of them starts and
// kills.
// It fails if a goroutine is left behind.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childStore); dir != "" {
		os.Exit(sendAsChild(dir, os.Getenv(childURL), os.Getenv(childStop) != ""))
	}
	if url := os.Getenv(shopDatabase); url != "" {
		os.Exit(serveShopAsChild(url, os.Getenv(shopBank)))
	}
	pgtest.Main(m)
}
