package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"

	"github.com/idem-go/idem"
	"github.com/idem-go/idem/bench/internal/machine"
	"github.com/jackc/pgx/v5"
)

var (
	//go:embed sql/empty.sql
	emptyTables string
	//go:embed sql/orders_count.sql
	ordersCount string
	//go:embed sql/keys_article.sql
	keysArticle string
	//go:embed sql/keys_idem.sql
	keysIdem string
)

// database is the PostgreSQL that all servers share.
type database struct{ *machine.Postgres }

func startDatabase(ctx context.Context, log io.Writer) (*database, error) {
	postgres, err := machine.StartPostgres(ctx, log)
	if err != nil {
		return nil, err
	}
	d := &database{postgres}
	if err := d.createTables(ctx); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *database) createTables(ctx context.Context) error {
	for _, schema := range []string{ordersSchema, articleSchema, usualSchema} {
		if _, err := d.Pool.Exec(ctx, schema, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("create the tables: %w", err)
		}
	}
	_, err := idem.Migrate(ctx, d.Pool)
	return err
}

// empty makes every measurement begin with empty tables.
func (d *database) empty(ctx context.Context) error {
	_, err := d.Pool.Exec(ctx, emptyTables)
	return err
}

func (d *database) orders(ctx context.Context) (n float64, err error) {
	err = d.Pool.QueryRow(ctx, ordersCount).Scan(&n)
	return n, err
}

// keySize is the bytes of a subject's table and indexes, and the keys that it
// holds, by a query of the subject's.
func (d *database) keySize(ctx context.Context, query string) (bytes, keys float64, err error) {
	err = d.Pool.QueryRow(ctx, query).Scan(&bytes, &keys)
	return bytes, keys, err
}
