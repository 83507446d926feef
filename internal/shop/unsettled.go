package shop

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// UnsettledEffect is a charge or a refund of which the database does not know whether the
// bank has made it. The bank knows, by the effect's key.
type UnsettledEffect struct {
	Scope, Effect string // its key is the reference at the bank
	Refund        bool   // else a charge
	Unknown       bool   // nobody works on it any more; else it is started
	Calls         int    // so far
	Calling       bool   // the last one may be under way
}

// Unsettled lists those for the orders of the customers from first to last, both
// included.
func Unsettled(ctx context.Context, pool *pgxpool.Pool, first, last int64) ([]UnsettledEffect, error) {
	rows, err := pool.Query(ctx, statement("unsettled"), first, last+1)
	if err != nil {
		return nil, fmt.Errorf("shop: unsettled: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[UnsettledEffect])
	if err != nil {
		return nil, fmt.Errorf("shop: unsettled: %w", err)
	}
	return found, nil
}
