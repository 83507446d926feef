package queue

import (
	"cmp"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// rows are a statement's rows. They note how it ended, which is known when they
// are closed; every step is a call on the connection, so that rows which a
// handler has left open can be ended for it.
type rows struct {
	pgx.Rows
	*transaction
	after interface{ end() } // the batch, or the rows left open before, that are still to be read
	over  atomic.Pointer[outcome]
}

// outcome is how a statement ended, once its rows are closed. It is kept apart,
// since a goroutine that a handler has left behind may ask while its rows are
// being ended.
type outcome struct {
	tag pgconn.CommandTag
	err error
}

// end closes the rows, within a call or when none can come any more.
func (r *rows) end() {
	r.Rows.Close()
	o := &outcome{r.Rows.CommandTag(), r.Rows.Err()}
	if r.over.CompareAndSwap(nil, o) {
		r.reading = r.after
		r.saw(o.err)
	}
}

func (r *rows) Close() {
	if r.enter() == nil {
		defer r.exit()
		r.end()
	}
}

func (r *rows) Next() bool {
	if r.enter() != nil {
		return false
	}
	defer r.exit()
	more := r.Rows.Next()
	if !more {
		r.end()
	}
	return more
}

func (r *rows) Scan(dest ...any) error {
	if err := r.enter(); err != nil {
		return err
	}
	defer r.exit()
	return r.Rows.Scan(dest...)
}

func (r *rows) Values() ([]any, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer r.exit()
	return r.Rows.Values()
}

func (r *rows) RawValues() [][]byte {
	if r.enter() != nil {
		return nil
	}
	defer r.exit()
	return r.Rows.RawValues()
}

func (r *rows) Err() error {
	if o := r.over.Load(); o != nil {
		return o.err
	}
	if err := r.enter(); err != nil {
		return err
	}
	defer r.exit()
	return r.Rows.Err()
}

func (r *rows) CommandTag() pgconn.CommandTag {
	if o := r.over.Load(); o != nil {
		return o.tag
	}
	return pgconn.CommandTag{} // which is not known before
}

func (r *rows) FieldDescriptions() []pgconn.FieldDescription {
	if r.enter() != nil {
		return nil
	}
	defer r.exit()
	return r.Rows.FieldDescriptions()
}

// Conn is nil, as pgx allows: what runs on the connection itself is watched only
// if it was asked of the transaction (see tx.Conn).
func (r *rows) Conn() *pgx.Conn { return nil }

// row is the one row of a statement, as pgx gives it.
type row struct{ pgx.Rows }

func (r row) Scan(dest ...any) error {
	defer r.Close()
	if err := r.Err(); err != nil {
		return err
	}
	if !r.Next() {
		return cmp.Or(r.Err(), pgx.ErrNoRows)
	}
	if err := r.Rows.Scan(dest...); err != nil {
		return err
	}
	r.Close()
	return r.Err()
}

// batchResults note how each statement of a batch ended.
type batchResults struct {
	pgx.BatchResults
	*transaction
}

// end reads the batch to its end, as rows.end does.
func (b *batchResults) end() {
	b.reading = nil
	b.saw(b.BatchResults.Close())
}

func (b *batchResults) Exec() (pgconn.CommandTag, error) {
	if err := b.enter(); err != nil {
		return pgconn.CommandTag{}, err
	}
	defer b.exit()
	tag, err := b.BatchResults.Exec()
	b.saw(err)
	return tag, err
}

func (b *batchResults) Query() (pgx.Rows, error) {
	if err := b.enter(); err != nil {
		return closedRows{err}, err
	}
	defer b.exit()
	r, err := b.BatchResults.Query()
	watched := &rows{Rows: r, transaction: b.transaction, after: b}
	b.reading = watched
	if err != nil {
		watched.end()
	}
	return watched, err
}

func (b *batchResults) QueryRow() pgx.Row {
	r, _ := b.Query() // its error comes back from Scan
	return row{r}
}

// Close runs the callbacks of what has not been read; they read through pgx's
// own results, so that a failure shows in the error of Close.
func (b *batchResults) Close() error {
	if err := b.enter(); err != nil {
		return err
	}
	defer b.exit()
	b.reading = nil
	err := b.BatchResults.Close()
	b.saw(err)
	return err
}

// closedRows are the rows of a transaction that is over.
type closedRows struct{ err error }

func (r closedRows) Close()                                       {}
func (r closedRows) Err() error                                   { return r.err }
func (r closedRows) CommandTag() pgconn.CommandTag                { return pgconn.CommandTag{} }
func (r closedRows) FieldDescriptions() []pgconn.FieldDescription { return nil }
func (r closedRows) Next() bool                                   { return false }
func (r closedRows) Scan(...any) error                            { return r.err }
func (r closedRows) Values() ([]any, error)                       { return nil, r.err }
func (r closedRows) RawValues() [][]byte                          { return nil }
func (r closedRows) Conn() *pgx.Conn                              { return nil }
func (r closedRows) TypeMap() *pgtype.Map                         { return nil }

// travelled are the rows of a statement that travelled with the beginning: closing
// them reads the batch to its end.
type travelled struct {
	pgx.Rows
	results pgx.BatchResults
}

func (r travelled) Close() {
	r.Rows.Close()
	_ = r.results.Close() // its error is the rows'
}
