package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/admin"
	"github.com/idem-go/idem/internal/embedded"
	"github.com/idem-go/idem/internal/shop"
	"github.com/jackc/pgx/v5/pgxpool"
)

// demoDatabase is the demo's PostgreSQL: an embedded one, or one that was named.
type demoDatabase struct {
	pool   *pgxpool.Pool
	server *embedded.Server // nil if it was named
	url    string           // may hold a password
}

// openDemoDatabase starts or connects to the database and prepares it.
func openDemoDatabase(ctx context.Context, o demoOptions, log io.Writer) (d *demoDatabase, err error) {
	d = &demoDatabase{}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	url := databaseURL{value: o.databaseURL, source: "--database-url"}
	if o.databaseURL == "" {
		if d.server, err = embedded.Start(ctx, embedded.Config{DataDir: o.dataDir, Log: log}); err != nil {
			return d, dataDirFault(o, err)
		}
		url = databaseURL{value: d.server.URL(), source: "the embedded PostgreSQL"}
	}
	d.url = url.value
	cfg, err := poolConfig(url)
	if err != nil {
		return d, err
	}
	cfg.MaxConns = demoConnections
	if d.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return d, exitf(exitUnavailable, "cannot use the database: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, demoReadyLimit)
	defer cancel()
	return d, d.prepare(ctx, o)
}

// dataDirFault names the flag of a directory that cannot be used.
func dataDirFault(o demoOptions, err error) error {
	isDir := errors.Is(err, embedded.ErrDataDir) || errors.Is(err, embedded.ErrInUse) || errors.Is(err, embedded.ErrVersion)
	if o.dataDir == "" || !isDir {
		return err
	}
	return exitf(exitFailed, "--data-dir: %s", strings.TrimPrefix(err.Error(), "embedded: "))
}

// prepare refuses a database that is somebody else's, and makes the tables.
func (d *demoDatabase) prepare(ctx context.Context, o demoOptions) error {
	if _, err := idem.SchemaVersion(ctx, d.pool); err != nil {
		return err
	}
	if d.server == nil && !o.yes {
		others, err := shop.ForeignTables(ctx, d.pool)
		if err != nil {
			return err
		}
		if len(others) > 0 {
			return exitf(exitRefused, "the database has other tables (%s); use an empty one, or add --yes to put the demo beside them",
				strings.Join(others, ", "))
		}
	}
	if err := admin.Writable(ctx, d.pool); err != nil {
		return err
	}
	if _, err := idem.Migrate(ctx, d.pool); err != nil {
		return err
	}
	return shop.Migrate(ctx, d.pool)
}

// close waits for work that a client has left behind, then stops an embedded
// server.
func (d *demoDatabase) close() error {
	if d.pool != nil {
		d.pool.Close()
	}
	if d.server != nil {
		return d.server.Close()
	}
	return nil
}
