package shop

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// migration is the order in which the shop's tables are made. Every statement
// may be repeated.
var migration = [...]string{
	"migrate_lock",
	"migrate_schema",
	"migrate_orders",
	"migrate_indexes",
	"migrate_unguarded_orders",
	"migrate_unguarded_indexes",
	"migrate_bookings",
	"migrate_payments",
	"migrate_payments_index",
	"migrate_accounts",
	"migrate_accounts_rows",
	"migrate_postings",
	"migrate_receipts",
	"migrate_receipts_index",
	"migrate_refunds",
}

// Migrate makes the shop's tables where they are missing, all or none. It may be
// called again and from many processes at once.
func Migrate(ctx context.Context, pool *pgxpool.Pool) error {
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		for _, name := range migration {
			if _, err := tx.Exec(ctx, statement(name)); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("shop: migrate: %w", err)
	}
	return nil
}
