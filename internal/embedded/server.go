//go:build unix

package embedded

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"sync"
)

// superuser is the name of the role that owns every cluster made here.
const superuser = "postgres"

// Server is a running PostgreSQL. Its methods may be called concurrently.
type Server struct {
	run      *runDir
	data     *dataDir
	process  *process
	port     int
	password string
	version  string

	closing sync.Once
	closed  error
}

// URL returns the connection string of the database "postgres" as superuser.
// It contains the password.
func (s *Server) URL() string { return s.DatabaseURL("postgres") }

// DatabaseURL returns the connection string of the named database as
// superuser. It contains the password.
func (s *Server) DatabaseURL(name string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(superuser, s.password),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)),
		Path:     "/" + name,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// DataDir returns the absolute path of the data directory.
func (s *Server) DataDir() string { return s.data.path }

// Version returns the version of the server, such as "15.18".
func (s *Server) Version() string { return s.version }

// Close disconnects all clients, stops the server, waits for it to end and
// removes a temporary data directory. Later calls return what the first did.
func (s *Server) Close() error {
	s.closing.Do(func() { s.closed = s.stop() })
	return s.closed
}

func (s *Server) stop() error {
	var errs []error
	if s.process != nil {
		errs = append(errs, s.process.stop())
	}
	if s.data != nil {
		errs = append(errs, s.data.unlock())
	}
	return errors.Join(append(errs, s.run.remove())...)
}
