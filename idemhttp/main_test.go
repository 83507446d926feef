package idemhttp_test

import (
	"os"
	"testing"

	"github.com/idem-go/idem/internal/pgtest"
)

// TestMain runs the tests, or is a process that one of them starts and kills: a
// server, a server of the crash matrix, or its bank.
func TestMain(m *testing.M) {
	if url := os.Getenv(childDatabase); url != "" {
		os.Exit(serveAsChild(url, os.Getenv(childPoint)))
	}
	if orders := os.Getenv(crashVariable); orders != "" {
		os.Exit(serveCrash(orders))
	}
	if log := os.Getenv(bankVariable); log != "" {
		os.Exit(serveBank(log))
	}
	pgtest.Main(m)
}
