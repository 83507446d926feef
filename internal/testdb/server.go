// Package testdb makes databases for tests: each is cloned from a template that
// was migrated once, on a server that the test binary starts and stops or on one
// that it is given.
package testdb

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/idem-go/idem/internal/embedded"
	"github.com/jackc/pgx/v5"
)

// Server is a PostgreSQL server for tests. Its methods may be called
// concurrently.
type Server struct {
	url      string // of a database to be in while others are made
	prefix   string // of the names of what is made
	embedded *embedded.Server
	pooler   *pooler // nil: none is in front of it
	made     atomic.Int64

	mu        sync.Mutex
	templates map[identity]*template
}

// newServer is a server of somebody else's, on which names must not collide.
func newServer(at string) (*Server, error) {
	u, err := url.Parse(at)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		// The parser's error repeats the URL, and that may hold a password.
		return nil, errors.New("the server must be given as postgres://user:password@host:port/name")
	}
	return &Server{url: at, prefix: "idemtest_" + strings.ToLower(rand.Text()[:10]) + "_", templates: map[identity]*template{}}, nil
}

// Embedded is the embedded server behind s, or nil.
func (s *Server) Embedded() *embedded.Server { return s.embedded }

// Empty makes a database with nothing in it.
func (s *Server) Empty(ctx context.Context) (*Database, error) {
	return s.create(ctx, "template0")
}

// Clone makes a database that holds Idem's schema and what migrate, which may be
// nil, makes in it. The migration runs once for all databases that are cloned
// with the same function.
func (s *Server) Clone(ctx context.Context, migrate Migrate) (*Database, error) {
	t := s.hold(migrate)
	d, err := t.clone(ctx)
	if err != nil {
		return nil, errors.Join(err, s.letGo(t))
	}
	d.template = t
	return d, nil
}

func (s *Server) create(ctx context.Context, from string) (*Database, error) {
	name := fmt.Sprintf("%s%d", s.prefix, s.made.Add(1))
	if err := s.run(ctx, "create database "+name+" template "+from); err != nil {
		return nil, err
	}
	return &Database{server: s, name: name}, nil
}

// databaseURL is the URL of a database of the server.
func (s *Server) databaseURL(name string) string {
	u, err := url.Parse(s.url)
	if err != nil {
		panic("testdb: the server's URL was parsed before: " + err.Error())
	}
	u.Path = "/" + name
	return u.String()
}

// run runs one statement, outside of any database that it is about.
func (s *Server) run(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, statement)
	return err
}
