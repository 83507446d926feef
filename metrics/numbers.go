package metrics

import (
	"context"
	"strconv"

	sqlmetrics "github.com/idem-go/idem/internal/pgsql/metrics"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// numbers are what one round trip has read; nil is what it has not.
type numbers struct {
	transaction, unsettled *float64
	lags                   []lag
	backlogs               []backlog
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
// The backlog comes last, since an old transaction makes it slow to read, which should be
// seen: beside an error there is what was read before it.
func readNumbers(pool *pgxpool.Pool, queues []string) (n numbers, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), readLimit)
	defer cancel()
	batch := &pgx.Batch{}
	batch.Queue(sqlmetrics.Begin, strconv.FormatInt(statementLimit.Milliseconds(), 10)) // the batch is one transaction
	batch.Queue(sqlmetrics.OldestTransaction).QueryRow(func(row pgx.Row) error { return row.Scan(&n.transaction) })
	batch.Queue(sqlmetrics.Unsettled).QueryRow(func(row pgx.Row) error { return row.Scan(&n.unsettled) })
	batch.Queue(sqlmetrics.SweepLag).Query(func(rows pgx.Rows) (err error) {
		n.lags, err = pgx.CollectRows(rows, pgx.RowToStructByPos[lag])
		return err
	})
	batch.Queue(sqlmetrics.Backlog, queues).Query(func(rows pgx.Rows) (err error) {
		n.backlogs, err = pgx.CollectRows(rows, pgx.RowToStructByPos[backlog])
		return err
	})
	err = pool.SendBatch(ctx, batch).Close()
	return n, err
}
