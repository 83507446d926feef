package claim

import (
	"cmp"
	"context"

	"github.com/idem-go/idem"
	sqltx "github.com/idem-go/idem/internal/pgsql/tx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// tx is the handler's transaction, or a savepoint in it: pgx's own, without the
// right to end the transaction, and watched.
type tx struct {
	pgx.Tx
	*session
	nested bool
}

// Guarded says that the guard ends the transaction, and looks at what is left of it
// first. Whoever meets a failure need not, and must not take the connection for that.
func (t *tx) Guarded() {}

// enter begins a call on the connection. It ends with exit.
func (t *tx) enter() error {
	if t.answered.Load() {
		return t.gone()
	}
	return t.session.enter()
}

// ready is enter for what cannot travel with a lazy claim: the claim goes ahead.
func (t *tx) ready(ctx context.Context) error {
	if err := t.enter(); err != nil || !t.lazy {
		return err
	}
	if err := t.alone(ctx); err != nil {
		t.exit()
		return err
	}
	return nil
}

// Begin opens a savepoint, which the handler may end as it likes.
func (t *tx) Begin(ctx context.Context) (pgx.Tx, error) {
	if err := t.ready(ctx); err != nil {
		return nil, err
	}
	defer t.exit()
	inner, err := t.Tx.Begin(ctx)
	t.saw("", pgconn.CommandTag{}, err)
	if err != nil {
		return nil, err
	}
	return &tx{Tx: inner, session: t.session, nested: true}, nil
}

// Commit releases a savepoint. The transaction itself is not the handler's to
// commit, and a handler that tries meant something else than what would be
// committed.
func (t *tx) Commit(ctx context.Context) error {
	if err := t.enter(); err != nil {
		return err
	}
	defer t.exit()
	if !t.nested {
		t.refused = true
		return idem.ErrTxOwned
	}
	err := t.Tx.Commit(ctx)
	t.saw("", pgconn.CommandTag{}, err)
	return err
}

// Rollback rolls back to a savepoint. Of the transaction itself it ends the use
// and makes the request end as not applied; the guard sends the ROLLBACK.
func (t *tx) Rollback(ctx context.Context) error {
	if err := t.enter(); err != nil {
		return err
	}
	defer t.exit()
	if !t.nested {
		t.refused = true
		t.close()
		return nil
	}
	t.endReading() // as the end of any transaction closes its rows
	err := t.Tx.Rollback(ctx)
	t.saw("", pgconn.CommandTag{}, err)
	return err
}

func (t *tx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := t.enter(); err != nil {
		return pgconn.CommandTag{}, err
	}
	defer t.exit()
	t.sends(sql)
	results, err := t.travel(ctx, sql, args)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	var tag pgconn.CommandTag
	if results == nil {
		tag, err = t.Tx.Exec(ctx, sql, args...)
	} else {
		tag, err = results.Exec()
		err = cmp.Or(err, results.Close())
	}
	t.saw(sql, tag, err)
	return tag, err
}

func (t *tx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := t.enter(); err != nil {
		return closedRows{err}, err
	}
	defer t.exit()
	t.sends(sql)
	results, err := t.travel(ctx, sql, args)
	if err != nil {
		return closedRows{err}, err
	}
	var r pgx.Rows
	if results == nil {
		r, err = t.Tx.Query(ctx, sql, args...)
	} else {
		r, err = results.Query()
		r = travelled{r, results}
	}
	watched := &rows{Rows: r, session: t.session, sql: sql, after: t.reading}
	t.reading = watched
	if err != nil {
		watched.end()
	}
	return watched, err
}

func (t *tx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	r, _ := t.Query(ctx, sql, args...) // its error comes back from Scan
	return row{r}
}

func (t *tx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if err := t.enter(); err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	defer t.exit()
	results, err := t.batchTravel(ctx, b)
	if err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	if results == nil {
		results = t.Tx.SendBatch(ctx, b)
	}
	for _, q := range b.QueuedQueries {
		if commits(q.SQL) {
			t.committed.Store(true) // its tag may never be read
		}
	}
	watched := &batchResults{BatchResults: results, session: t.session}
	t.reading = watched
	return watched
}

func (t *tx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, src pgx.CopyFromSource) (int64, error) {
	if err := t.ready(ctx); err != nil {
		return 0, err
	}
	defer t.exit()
	n, err := t.Tx.CopyFrom(ctx, table, columns, src)
	t.saw("", pgconn.CommandTag{}, err)
	return n, err
}

func (t *tx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if err := t.ready(ctx); err != nil {
		return nil, err
	}
	defer t.exit()
	d, err := t.Tx.Prepare(ctx, name, sql)
	t.saw("", pgconn.CommandTag{}, err)
	return d, err
}

// LargeObjects is pgx's. What runs through it is not watched, as with Conn.
func (t *tx) LargeObjects() pgx.LargeObjects {
	if t.Conn() == nil {
		return pgx.LargeObjects{}
	}
	return t.Tx.LargeObjects()
}

// Conn is the connection itself, for drivers that need it; nil once the
// transaction is over or the key is not this request's. What runs on it is seen
// only by what it leaves, so the transaction's id is noted first, which tells
// whether the handler had committed if the connection is lost; and the
// connection is not used again afterwards, since the handler may have kept it.
func (t *tx) Conn() *pgx.Conn {
	ctx, cancel := context.WithTimeout(context.Background(), commitLimit)
	defer cancel()
	if err := t.ready(ctx); err != nil {
		return nil
	}
	defer t.exit()
	if !t.exposed.Swap(true) && !t.committed.Load() { // whose transaction would be another
		var id string
		if err := t.conn.QueryRow(ctx, sqltx.ID).Scan(&id); err == nil {
			t.id.Store(&id)
		}
	}
	return t.conn
}
