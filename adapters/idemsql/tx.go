package idemsql

import (
	"context"
	"database/sql/driver"
)

// tx is the guard's transaction, or the savepoint that its connection has begun.
type tx struct {
	conn *conn
	ctx  context.Context // with which it was begun
}

var _ driver.Tx = (*tx)(nil)

// Commit releases the savepoint; the transaction itself is the guard's to commit.
func (t *tx) Commit() error {
	err := t.conn.current.Commit(t.ctx)
	t.conn.current = t.conn.tx
	return err
}

// Rollback rolls back to the savepoint. When the context has ended, database/sql
// calls it from a goroutine of its own, at any moment: the connection may be in
// use. Then nothing is sent, and the request ends as not applied, unless it has
// ended already.
func (t *tx) Rollback() error {
	if t.ctx.Err() != nil {
		return t.conn.tx.Rollback(t.ctx)
	}
	err := t.conn.current.Rollback(t.ctx)
	t.conn.current = t.conn.tx
	return err
}
