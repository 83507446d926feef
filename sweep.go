package idem

import (
	"context"
	"errors"
	"time"

	"github.com/idem-go/idem/internal/pgsql/keys"
	"github.com/idem-go/idem/internal/pgsql/tasks"
	sqltx "github.com/idem-go/idem/internal/pgsql/tx"
	"github.com/jackc/pgx/v5"
)

const (
	// sweepBatch keeps one DELETE short, so that replicas and vacuum keep up.
	sweepBatch = 1000
	// sweepPause bounds the rate of a sweep to about 20,000 rows a second.
	sweepPause = 50 * time.Millisecond
	// sweepLimit bounds one batch.
	sweepLimit = 10 * time.Second
	// SweepInterval is how often RunSweeper sweeps: expiry is decided when a
	// key is claimed, so a sweep only gives space back.
	SweepInterval = time.Minute
)

// Swept counts what a sweep did.
type Swept struct {
	Deleted  int64 // keys removed, since their time is over
	Stripped int64 // keys whose answer was removed and whose bare key is kept
	Tasks    int64 // finished tasks removed, and their keys with them
	Takes    int64 // takes removed that nobody has ended
}

// Sweep removes everything whose time is over by the database's clock, in
// batches of 1,000 rows at a bounded rate, and returns what it did, also beside
// an error. It never touches a key that is unknown or whose time is not over, nor a
// task that is not finished or has an effect that is not settled, and any number of
// processes may sweep at once. An error wraps ErrUnavailable.
func Sweep(ctx context.Context, db *DB) (Swept, error) {
	var swept Swept
	var err error
	if swept.Stripped, err = db.sweepAll(ctx, keys.Entomb); err == nil {
		swept.Deleted, err = db.sweepAll(ctx, keys.Sweep)
	}
	if err == nil {
		swept.Tasks, err = db.sweepAll(ctx, tasks.Sweep)
	}
	if err == nil {
		swept.Takes, err = db.sweepAll(ctx, tasks.SweepTakes)
	}
	if rows := swept.Deleted + swept.Stripped + swept.Tasks + swept.Takes; rows > 0 || err != nil {
		db.Observe(ctx, Event{Kind: EventSweep, Rows: rows, Err: err})
	}
	return swept, err
}

// RunSweeper sweeps once every SweepInterval until ctx ends, and returns ctx's
// error. A sweep that fails is told as an event and tried again at the next
// interval. It owns no other goroutine.
func RunSweeper(ctx context.Context, db *DB) error {
	ticker := time.NewTicker(SweepInterval)
	defer ticker.Stop()
	for {
		_, _ = Sweep(ctx, db) // told as an event
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// sweepAll runs statement until a batch is not full.
func (db *DB) sweepAll(ctx context.Context, statement string) (total int64, err error) {
	for {
		n, err := db.sweepOnce(ctx, statement)
		total += n
		if err != nil || n < sweepBatch {
			return total, err
		}
		select {
		case <-ctx.Done():
			return total, ctx.Err()
		case <-time.After(sweepPause):
		}
	}
}

func (db *DB) sweepOnce(ctx context.Context, statement string) (n int64, err error) {
	err = pgx.BeginTxFunc(ctx, db.pool, readCommitted, func(tx pgx.Tx) error {
		limit := milliseconds(sweepLimit)
		if err := setLimits(ctx, tx, limit, limit); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, sqltx.ByIndex); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, statement, sweepBatch)
		n = tag.RowsAffected()
		return err
	})
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(err, cause) {
			return 0, cause
		}
		return 0, unavailable("sweep", err)
	}
	return n, nil
}
