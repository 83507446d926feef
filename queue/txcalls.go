package queue

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/idem-go/idem"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// now is pgx's transaction behind it.
func (t *tx) now() pgx.Tx {
	if t.nested {
		return t.inTx
	}
	return t.inner
}

// Begin opens a savepoint, which the handler may end as it likes.
func (t *tx) Begin(ctx context.Context) (pgx.Tx, error) {
	if err := t.enter(); err != nil {
		return nil, err
	}
	defer t.exit()
	if err := t.ready(ctx); err != nil {
		return nil, err
	}
	inner, err := t.now().Begin(ctx)
	t.saw(err)
	if err != nil {
		return nil, err
	}
	return &tx{transaction: t.transaction, inTx: inner, nested: true}, nil
}

// Commit releases a savepoint. The transaction itself is not the handler's to commit.
func (t *tx) Commit(ctx context.Context) error {
	if err := t.enter(); err != nil {
		return err
	}
	defer t.exit()
	if !t.nested {
		t.refused = idem.ErrTxOwned
		return idem.ErrTxOwned
	}
	err := t.inTx.Commit(ctx)
	t.saw(err)
	return err
}

// Rollback rolls back to a savepoint. Of the transaction itself it ends the use, and makes
// the attempt fail.
func (t *tx) Rollback(ctx context.Context) error {
	if err := t.enter(); err != nil {
		return err
	}
	defer t.exit()
	if !t.nested {
		t.refused = errRolledBack
		t.shut()
		return nil
	}
	t.endReading()
	err := t.inTx.Rollback(ctx)
	t.saw(err)
	return err
}

var errRolledBack = errors.New("the handler has rolled its transaction back; return an error instead")

// endReading ends the rows that are open, and then the batch that they are of.
func (t *transaction) endReading() {
	for t.reading != nil {
		t.reading.end()
	}
}

// Exec runs a statement.
func (t *tx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := t.enter(); err != nil {
		return pgconn.CommandTag{}, err
	}
	defer t.exit()
	results, err := t.travel(ctx, sql, args)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	var tag pgconn.CommandTag
	if results == nil {
		tag, err = t.now().Exec(ctx, sql, args...)
	} else {
		tag, err = results.Exec()
		err = cmp.Or(err, results.Close())
	}
	t.saw(err)
	return tag, err
}

// travel sends a statement together with the beginning of the transaction.
func (t *tx) travel(ctx context.Context, sql string, args []any) (pgx.BatchResults, error) {
	if t.begun() {
		return nil, nil
	}
	if !travels(sql, args) {
		return nil, t.ready(ctx)
	}
	results, err := t.open(ctx, func(b *pgx.Batch) { b.Queue(sql, args...) })
	if results == nil { // otherwise the connection does not know yet where it stands
		t.saw(err)
	}
	return results, err
}

// travels reports whether a statement can be sent in one batch with the beginning: not
// several at once, and none of pgx's options.
func travels(sql string, args []any) bool {
	if len(args) == 0 {
		return !strings.Contains(strings.TrimRight(sql, "; \t\r\n"), ";")
	}
	switch args[0].(type) {
	case pgx.QueryExecMode, pgx.QueryResultFormats, pgx.QueryResultFormatsByOID:
		return false
	}
	return true
}

// Query runs a statement.
func (t *tx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := t.enter(); err != nil {
		return closedRows{err}, err
	}
	defer t.exit()
	results, err := t.travel(ctx, sql, args)
	if err != nil {
		return closedRows{err}, err
	}
	var r pgx.Rows
	if results == nil {
		r, err = t.now().Query(ctx, sql, args...)
	} else {
		r, err = results.Query()
		r = travelled{r, results}
	}
	watched := &rows{Rows: r, transaction: t.transaction, after: t.reading}
	t.reading = watched
	if err != nil {
		watched.end()
	}
	return watched, err
}

// QueryRow runs a statement of one row.
func (t *tx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	r, _ := t.Query(ctx, sql, args...) // its error comes back from Scan
	return row{r}
}

// SendBatch runs a batch.
func (t *tx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if err := t.enter(); err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	defer t.exit()
	if err := t.ready(ctx); err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	results := &batchResults{BatchResults: t.now().SendBatch(ctx, b), transaction: t.transaction}
	t.reading = results
	return results
}

// CopyFrom copies rows into a table.
func (t *tx) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, src pgx.CopyFromSource) (int64, error) {
	if err := t.enter(); err != nil {
		return 0, err
	}
	defer t.exit()
	if err := t.ready(ctx); err != nil {
		return 0, err
	}
	n, err := t.now().CopyFrom(ctx, table, columns, src)
	t.saw(err)
	return n, err
}

// Prepare prepares a statement.
func (t *tx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if err := t.enter(); err != nil {
		return nil, err
	}
	defer t.exit()
	if err := t.ready(ctx); err != nil {
		return nil, err
	}
	d, err := t.now().Prepare(ctx, name, sql)
	t.saw(err)
	return d, err
}

// LargeObjects is pgx's.
func (t *tx) LargeObjects() pgx.LargeObjects {
	if t.Conn() == nil {
		return pgx.LargeObjects{}
	}
	return t.now().LargeObjects()
}

// Conn is the connection itself, for drivers that need it; nil once the transaction is
// over. The connection is not used again afterwards, since the handler may have kept it.
func (t *tx) Conn() *pgx.Conn {
	if err := t.enter(); err != nil {
		return nil
	}
	defer t.exit()
	ctx, cancel := context.WithTimeout(context.Background(), commitLimit)
	defer cancel()
	if err := t.ready(ctx); err != nil {
		return nil
	}
	t.exposed = true
	return t.conn
}
