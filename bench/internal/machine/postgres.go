package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/idem-go/idem/internal/embedded"
	"github.com/jackc/pgx/v5/pgxpool"
)

// postgresSettings keep every promise of a COMMIT; the rest is room, so that
// no checkpoint falls into one measurement and not into another.
func postgresSettings() map[string]string {
	return map[string]string{
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on",
		"shared_buffers": "1GB", "max_wal_size": "8GB", "checkpoint_timeout": "30min", "max_connections": "500",
	}
}

// Postgres is a PostgreSQL of our own, which serves nobody else.
type Postgres struct {
	Server *embedded.Server
	Pool   *pgxpool.Pool // for measuring, apart from the subjects' pools
}

// StartPostgres starts it, and tells what it does to log.
func StartPostgres(ctx context.Context, log io.Writer) (*Postgres, error) {
	server, err := embedded.Start(ctx, embedded.Config{Settings: postgresSettings(), Log: log})
	if err != nil {
		return nil, err
	}
	p := &Postgres{Server: server}
	if p.Pool, err = pgxpool.New(ctx, server.URL()); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Close stops it and removes its data.
func (p *Postgres) Close() error {
	if p.Pool != nil {
		p.Pool.Close()
	}
	return p.Server.Close()
}

// CPU is the CPU time that all of its processes have used.
func (p *Postgres) CPU() (time.Duration, error) { return postgresCPU(p.Server.DataDir()) }

// OpenPool returns a pool whose connections are there from the start.
func OpenPool(ctx context.Context, url string, size int) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns, config.MinConns = int32(size), int32(size)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(openLimit); pool.Stat().IdleConns() < int32(size); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			pool.Close()
			return nil, fmt.Errorf("not %d connections within %v", size, openLimit)
		}
	}
	return pool, nil
}

// openLimit bounds how long the connections of a pool take to be there.
const openLimit = 20 * time.Second
