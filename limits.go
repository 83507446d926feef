package idem

import (
	"context"
	"strconv"
	"time"

	sqltx "github.com/idem-go/idem/internal/pgsql/tx"
	"github.com/jackc/pgx/v5"
)

// readCommitted is the level of our own transactions, whatever the database's
// default is: each statement sees what was committed before it.
var readCommitted = pgx.TxOptions{IsoLevel: pgx.ReadCommitted}

// setLimits bounds a transaction that is not a request's; both limits are in
// milliseconds. A peer that falls silent loses the transaction after statement.
func setLimits(ctx context.Context, tx pgx.Tx, statement, lock string) error {
	_, err := tx.Exec(ctx, sqltx.Limits, statement, lock, statement)
	return err
}

func milliseconds(d time.Duration) string {
	return strconv.FormatInt(d.Milliseconds(), 10)
}
