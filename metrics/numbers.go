package metrics

import (
	"context"
	"strconv"

	sqlmetrics "github.com/idem-go/idem/internal/pgsql/metrics"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// numbers are what one round trip has read.
type numbers struct {
	backlogs    []backlog
	unsettled   float64
	transaction float64
	lags        []lag
}

// backlog is what there is of one queue.
type backlog struct {
	Queue                    string
	Pending, Running, Failed float64
	Due                      float64 // seconds
}

// lag is by how much a table's sweep is late, in seconds.
type lag struct {
	Table string
	Lag   float64
}

// readNumbers asks all of it in one round trip (and one more to prepare it the first time).
func readNumbers(pool *pgxpool.Pool, queues []string) (*numbers, error) {
	ctx, cancel := context.WithTimeout(context.Background(), readLimit)
	defer cancel()
	n := &numbers{}
	batch := &pgx.Batch{}
	batch.Queue(sqlmetrics.Begin, strconv.FormatInt(readLimit.Milliseconds(), 10)) // the batch is one transaction
	batch.Queue(sqlmetrics.Backlog, queues).Query(func(rows pgx.Rows) (err error) {
		n.backlogs, err = pgx.CollectRows(rows, pgx.RowToStructByPos[backlog])
		return err
	})
	batch.Queue(sqlmetrics.Unsettled).QueryRow(func(row pgx.Row) error { return row.Scan(&n.unsettled) })
	batch.Queue(sqlmetrics.OldestTransaction).QueryRow(func(row pgx.Row) error { return row.Scan(&n.transaction) })
	batch.Queue(sqlmetrics.SweepLag).Query(func(rows pgx.Rows) (err error) {
		n.lags, err = pgx.CollectRows(rows, pgx.RowToStructByPos[lag])
		return err
	})
	if err := pool.SendBatch(ctx, batch).Close(); err != nil {
		return nil, err
	}
	return n, nil
}
