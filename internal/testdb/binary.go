package testdb

import (
	"context"
	"errors"
	"os"
	"sync"

	"github.com/idem-go/idem/internal/embedded"
)

// settings trade durability, which no test outlives, for speed.
var settings = map[string]string{
	"fsync":                     "off",
	"full_page_writes":          "off",
	"max_connections":           "300",
	"shared_buffers":            "64MB",
	"autovacuum":                "off",
	"max_prepared_transactions": "10",
	"log_min_messages":          "fatal",
}

// binDirVariable names a directory with initdb and postgres, to run the tests on
// another version of PostgreSQL than the newest on this machine.
const binDirVariable = "IDEM_TEST_BINDIR"

// binary is what the tests of this process share: a server is started once, and
// a template is made once for all that clone it.
var binary struct {
	mu      sync.Mutex
	private *Server
	err     error
	others  map[string]*Server // by URL
}

// Private returns the server of this test binary, started at the first call. It
// ends with the process, or with Stop.
func Private() (*Server, error) {
	binary.mu.Lock()
	defer binary.mu.Unlock()
	if binary.private == nil && binary.err == nil {
		binary.private, binary.err = startPrivate()
	}
	return binary.private, binary.err
}

func startPrivate() (*Server, error) {
	server, err := embedded.Start(context.Background(), embedded.Config{
		InMemory: true, Settings: settings, BinDir: os.Getenv(binDirVariable)})
	if err != nil {
		return nil, err
	}
	s := &Server{url: server.URL(), prefix: "test_", embedded: server, templates: map[identity]*template{}}
	if program := os.Getenv(poolerVariable); program != "" {
		if s.pooler, err = startPooler(program, s.url); err != nil {
			return nil, errors.Join(err, server.Close())
		}
	}
	return s, nil
}

// Stop stops the private server, if there is one. No test may run any more.
func Stop() error {
	binary.mu.Lock()
	defer binary.mu.Unlock()
	if binary.private == nil {
		return nil
	}
	s := binary.private
	binary.private, binary.err = nil, errors.New("the server has been stopped")
	var err error
	if s.pooler != nil {
		err = s.pooler.stop()
	}
	return errors.Join(err, s.embedded.Close())
}

// At returns the server of url, of a role that may create databases. Nothing is
// left on it when its databases have been dropped.
func At(url string) (*Server, error) {
	binary.mu.Lock()
	defer binary.mu.Unlock()
	if s := binary.others[url]; s != nil {
		return s, nil
	}
	s, err := newServer(url)
	if err != nil {
		return nil, err
	}
	if binary.others == nil {
		binary.others = map[string]*Server{}
	}
	binary.others[url] = s
	return s, nil
}
