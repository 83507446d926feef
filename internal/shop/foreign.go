package shop

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ForeignTables names tables and views of a database that belong neither to
// Idem nor to the shop nor to an extension, at most five.
func ForeignTables(ctx context.Context, pool *pgxpool.Pool) ([]string, error) {
	rows, err := pool.Query(ctx, statement("foreign_tables"))
	if err != nil {
		return nil, fmt.Errorf("shop: foreign_tables: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("shop: foreign_tables: %w", err)
	}
	return names, nil
}
