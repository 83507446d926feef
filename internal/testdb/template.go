package testdb

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/idem-go/idem"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Migrate makes a program's own tables. It must leave no connection behind.
type Migrate = func(ctx context.Context, pool *pgxpool.Pool) error

// identity tells one function from another, closures of the same code among
// them. It is good for as long as the function is referred to.
type identity unsafe.Pointer

// identify returns the address of the function's closure, which is what a value
// of a function type is. Package reflect gives the address of the code only,
// which two closures over different variables share.
func identify(migrate Migrate) identity { return *(*identity)(unsafe.Pointer(&migrate)) }

// template is a migrated database that others are cloned from.
type template struct {
	server   *Server
	migrate  Migrate // keeps the identity from being used again
	once     sync.Once
	database *Database
	err      error
	uses     int // guarded by server.mu
}

// hold returns the template of migrate, to be let go.
func (s *Server) hold(migrate Migrate) *template {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.templates[identify(migrate)]
	if t == nil {
		t = &template{server: s, migrate: migrate}
		s.templates[identify(migrate)] = t
	}
	t.uses++
	return t
}

// letGo drops a template that nobody uses any more, on a server that outlives
// this process.
func (s *Server) letGo(t *template) error {
	s.mu.Lock()
	t.uses--
	last := t.uses == 0 && s.embedded == nil
	if last {
		delete(s.templates, identify(t.migrate))
	}
	s.mu.Unlock()
	if last && t.database != nil {
		return t.database.Drop()
	}
	return nil
}

func (t *template) clone(ctx context.Context) (*Database, error) {
	t.once.Do(func() { t.database, t.err = t.make(context.WithoutCancel(ctx)) })
	if t.err != nil {
		return nil, fmt.Errorf("the template: %w", t.err)
	}
	return t.server.create(ctx, t.database.name)
}

// make makes the template's database, migrated.
func (t *template) make(ctx context.Context) (*Database, error) {
	d, err := t.server.Empty(ctx)
	if err != nil {
		return nil, err
	}
	if err := t.migrateIn(ctx, d.URL()); err != nil {
		return nil, errors.Join(err, d.Drop())
	}
	if err := d.deserted(ctx); err != nil {
		return nil, errors.Join(err, d.Drop())
	}
	return d, nil
}

func (t *template) migrateIn(ctx context.Context, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	if _, err := idem.Migrate(ctx, pool); err != nil {
		return err
	}
	if t.migrate == nil {
		return nil
	}
	if err := t.migrate(ctx, pool); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}
