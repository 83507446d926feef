package idemsql

import (
	"context"
	"database/sql/driver"
)

// stmt is a statement's text, run where its connection is.
type stmt struct {
	conn  *conn
	query string
}

var (
	_ driver.StmtExecContext  = stmt{}
	_ driver.StmtQueryContext = stmt{}
)

func (s stmt) ExecContext(ctx context.Context, named []driver.NamedValue) (driver.Result, error) {
	return s.conn.ExecContext(ctx, s.query, named)
}

func (s stmt) QueryContext(ctx context.Context, named []driver.NamedValue) (driver.Rows, error) {
	return s.conn.QueryContext(ctx, s.query, named)
}

// NumInput leaves it to the server to count the parameters.
func (s stmt) NumInput() int { return -1 }

func (s stmt) Close() error { return nil }

func (s stmt) Exec([]driver.Value) (driver.Result, error) { return nil, errContext }

func (s stmt) Query([]driver.Value) (driver.Rows, error) { return nil, errContext }
