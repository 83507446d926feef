package testdb

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/idem-go/idem"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// leaveLimit is how long sessions that are about to end are waited for.
	leaveLimit = 10 * time.Second
	// leavePause is how often is asked whether they have ended.
	leavePause = 20 * time.Millisecond
)

// ErrLeft says that a session did not end in time: a connection was left behind.
var ErrLeft = errors.New("a connection to the database was left behind")

// Database is one database, there until it is dropped.
type Database struct {
	server   *Server
	name     string
	template *template // nil if it is no clone
}

// URL is where the database is. It holds the server's password.
func (d *Database) URL() string { return d.server.databaseURL(d.name) }

// PooledURL is where a program under test finds the database: behind the pooler,
// if the tests run with one. It holds the server's password.
func (d *Database) PooledURL() string {
	if d.server.pooler == nil {
		return d.URL()
	}
	return d.server.pooler.url(d.URL())
}

// Drop removes the database. It waits for sessions that are about to end; those
// that stay are ended, and reported as ErrLeft. A pooler keeps sessions, so behind
// one they are ended at once.
func (d *Database) Drop() error {
	ctx := context.Background()
	var err error
	if d.server.pooler == nil {
		err = d.whileUsed(ctx, func() error { return d.server.run(ctx, "drop database "+d.name) })
	}
	if d.server.pooler != nil || errors.Is(err, ErrLeft) {
		err = errors.Join(err, d.server.run(ctx, "drop database "+d.name+" with (force)"))
	}
	if d.template != nil {
		err = errors.Join(err, d.server.letGo(d.template))
	}
	return err
}

//go:embed sql/sessions.sql
var countSessions string

// deserted waits until no session is in the database, as it must be to be cloned.
func (d *Database) deserted(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, d.server.url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	return d.whileUsed(ctx, func() error {
		var sessions int
		err := conn.QueryRow(ctx, countSessions, d.name).Scan(&sessions)
		if err == nil && sessions > 0 {
			err = &pgconn.PgError{Code: objectInUse}
		}
		return err
	})
}

// objectInUse is the SQLSTATE of what others are using.
const objectInUse = "55006"

// whileUsed calls do again for as long as it fails since the database is in use,
// within the limit.
func (d *Database) whileUsed(ctx context.Context, do func() error) error {
	deadline := time.NewTimer(leaveLimit)
	defer deadline.Stop()
	tick := time.NewTicker(leavePause)
	defer tick.Stop()
	for {
		err := do()
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != objectInUse {
			return err
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			return ErrLeft
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Check returns every broken invariant of Idem's and of checks, each as an error.
func (d *Database) Check(ctx context.Context, checks ...idem.CheckFunc) []error {
	pool, err := Connect(ctx, d.URL())
	if err != nil {
		return []error{err}
	}
	defer pool.Close()
	return Check(ctx, pool, checks...)
}

// Check is Database.Check by way of a pool of Connect's.
func Check(ctx context.Context, pool *pgxpool.Pool, checks ...idem.CheckFunc) []error {
	db, err := idem.Open(ctx, pool, idem.Config{Checks: checks})
	if err != nil {
		return []error{err}
	}
	var broken []error
	for v, err := range idem.Check(ctx, db) {
		if err != nil {
			return append(broken, err)
		}
		broken = append(broken, fmt.Errorf("invariant %s is broken: %s %q: %s", v.Invariant, v.Table, v.Row, v.Detail))
	}
	return broken
}

// Connect returns a pool that Idem can be opened on, whatever the server's
// standbys.
func Connect(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	idem.Prepare(config)
	return pgxpool.NewWithConfig(ctx, config)
}
