package queue

import (
	"context"

	sqltx "github.com/idem-go/idem/internal/pgsql/tx"
	"github.com/jackc/pgx/v5"
)

// batches is what a batch of statements is sent by: a pool or a connection.
type batches interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// byIndex runs a statement that commits by itself, and has read its rows. The planner is
// kept from reading whole tables for it: also by a plan that was made when they were small,
// which a connection keeps for long.
func byIndex(ctx context.Context, db batches, sql string, args []any, read func(pgx.Rows) error) error {
	b := &pgx.Batch{}
	b.Queue(sqltx.ByIndex)
	b.Queue(sql, args...).Query(read)
	return db.SendBatch(ctx, b).Close() // one transaction, in one round trip
}

// ignore reads rows that say nothing.
func ignore(rows pgx.Rows) error {
	rows.Close()
	return rows.Err()
}
