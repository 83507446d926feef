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
// processes may sweep at once. A table that cannot be swept keeps none of the others
// from it: the error joins those of all, each of which names its table and wraps
// ErrUnavailable, unless asking again would not change it. Only the end of ctx ends
// the sweep at once.
func Sweep(ctx context.Context, db *DB) (Swept, error) {
	var swept Swept
	var failed []error
	for _, of := range []struct {
		sweeping
		stripped, total *int64
	}{
		{sweeping{tableKeys, keys.Entomb, keys.Sweep, false}, &swept.Stripped, &swept.Deleted},
		{sweeping{tableTasks, "", tasks.Sweep, true}, nil, &swept.Tasks},
		{sweeping{tableTakes, "", tasks.SweepTakes, true}, nil, &swept.Takes},
	} {
		e := db.sweepTable(ctx, of.sweeping)
		if *of.total = e.Rows; of.stripped != nil {
			*of.stripped = e.Stripped
		}
		if e.Rows > 0 || e.Stripped > 0 || e.Err != nil {
			db.Observe(ctx, e)
		}
		if e.Err != nil {
			failed = append(failed, e.Err)
		}
		if e.Err != nil && ctx.Err() != nil {
			break
		}
	}
	return swept, errors.Join(failed...)
}

// sweeping is how a table is swept.
type sweeping struct {
	table         string
	strip, remove string // the statements; strip may be empty
	ordered       bool   // they read an index in its order
}

// RunSweeper sweeps once every SweepInterval until ctx ends, and returns ctx's
// error. What cannot be swept is told by an event and tried again at the next
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

// sweepTable strips and removes. What cannot be stripped does not keep the rest from
// being removed: it may be that there is too much of the rest to look through in time.
func (db *DB) sweepTable(ctx context.Context, of sweeping) Event {
	e := Event{Kind: EventSweep, Table: of.table}
	if of.strip != "" {
		e.Stripped, _, e.Err = db.sweepAll(ctx, "strip "+of.table, of.strip, of.ordered)
	}
	if e.Err != nil && ctx.Err() != nil {
		return e
	}
	var err error
	e.Rows, e.Lag, err = db.sweepAll(ctx, "sweep "+of.table, of.remove, of.ordered)
	e.Err = errors.Join(e.Err, err)
	return e
}

// sweepAll runs statement until a batch is not full. Lag is by how much the time of the
// oldest of its rows was over, where the statement tells.
func (db *DB) sweepAll(ctx context.Context, doing, statement string, ordered bool) (total int64, lag time.Duration, err error) {
	for {
		n, late, err := db.sweepOnce(ctx, doing, statement, ordered)
		total, lag = total+n, max(lag, late)
		if err != nil || n < sweepBatch {
			return total, lag, err
		}
		select {
		case <-ctx.Done():
			return total, lag, ctx.Err()
		case <-time.After(sweepPause):
		}
	}
}

func (db *DB) sweepOnce(ctx context.Context, doing, statement string, ordered bool) (n int64, lag time.Duration, err error) {
	err = pgx.BeginTxFunc(ctx, db.pool, readCommitted, func(tx pgx.Tx) error {
		limit := milliseconds(sweepLimit)
		if err := setLimits(ctx, tx, limit, limit); err != nil {
			return err
		}
		if ordered { // the keys' BRIN index is none that could be
			if _, err := tx.Exec(ctx, sqltx.ByIndex); err != nil {
				return err
			}
		}
		rows, err := tx.Query(ctx, statement, sweepBatch)
		if err != nil {
			return err
		}
		var late float64 // seconds
		tag, err := pgx.ForEachRow(rows, []any{&late}, func() error {
			lag = max(lag, time.Duration(late*float64(time.Second)))
			return nil
		})
		n = tag.RowsAffected()
		return err
	})
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(err, cause) {
			return 0, 0, cause
		}
		return 0, 0, unavailable(doing, err)
	}
	return n, lag, nil
}
