package idemsql

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/jackc/pgx/v5"
)

// conn is a view on a guarded handler's transaction. database/sql calls one
// method of it at a time.
type conn struct {
	tx      pgx.Tx // the guard's
	current pgx.Tx // tx, or the savepoint that was begun in it
	whole   bool
}

var (
	_ driver.ConnBeginTx        = (*conn)(nil)
	_ driver.ConnPrepareContext = (*conn)(nil)
	_ driver.ExecerContext      = (*conn)(nil)
	_ driver.QueryerContext     = (*conn)(nil)
	_ driver.NamedValueChecker  = (*conn)(nil)
	_ driver.Validator          = (*conn)(nil)
)

var (
	errNamed   = errors.New("idemsql: arguments have no names in PostgreSQL; use $1, $2 or pgx.NamedArgs")
	errOptions = errors.New("idemsql: the guard has begun the transaction; choose its isolation level with Route.TxOptions")
	errContext = errors.New("idemsql: this needs a context; use the method whose name ends in Context")
)

func (c *conn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	if options != (driver.TxOptions{}) {
		return nil, errOptions
	}
	if c.whole {
		return &tx{conn: c, ctx: ctx}, nil
	}
	savepoint, err := c.tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	c.current = savepoint
	return &tx{conn: c, ctx: ctx}, nil
}

func (c *conn) ExecContext(ctx context.Context, query string, named []driver.NamedValue) (driver.Result, error) {
	args, err := positional(named)
	if err != nil {
		return nil, err
	}
	tag, err := c.current.Exec(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return driver.RowsAffected(tag.RowsAffected()), nil
}

func (c *conn) QueryContext(ctx context.Context, query string, named []driver.NamedValue) (driver.Rows, error) {
	args, err := positional(named)
	if err != nil {
		return nil, err
	}
	binary := formats()
	r, err := c.current.Query(ctx, query, append([]any{binary}, args...)...)
	if err != nil {
		return nil, err
	}
	return newRows(r, binary)
}

// PrepareContext sends nothing: pgx prepares and keeps statements by itself, so
// a statement's mistakes show when it is run.
func (c *conn) PrepareContext(_ context.Context, query string) (driver.Stmt, error) {
	return stmt{conn: c, query: query}, nil
}

// CheckNamedValue passes every argument on: pgx knows PostgreSQL's types, and
// driver.Valuer.
func (c *conn) CheckNamedValue(*driver.NamedValue) error { return nil }

// IsValid is false: no other request may get this connection.
func (c *conn) IsValid() bool { return false }

// Close leaves the transaction alone, which is the guard's.
func (c *conn) Close() error { return nil }

// Begin is what database/sql calls on connections without BeginTx.
func (c *conn) Begin() (driver.Tx, error) { return nil, errContext }

// Prepare is what database/sql calls on connections without PrepareContext.
func (c *conn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

func positional(named []driver.NamedValue) ([]any, error) {
	args := make([]any, len(named))
	for i, n := range named {
		if n.Name != "" {
			return nil, errNamed
		}
		args[i] = n.Value
	}
	return args, nil
}
