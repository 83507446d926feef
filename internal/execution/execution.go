// Package execution carries the running handler's execution in a context, so
// that package idem can offer it to handlers and the doors can provide it
// without either knowing the other's types.
package execution

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Execution is one run of a guarded handler, or of a task's.
type Execution interface {
	// Tx is the transaction that the handler's writes and its answer share.
	Tx() pgx.Tx
	// KeepWrites asks that a remembered refusal keeps the handler's rows.
	KeepWrites()
	// AfterCommit adds a function to be called once the commit is known.
	AfterCommit(fn func(context.Context))
	// Reference sets what a repeat fetches instead of stored bytes.
	Reference(ref string)
	// Pool is where statements run that are not of its transaction.
	Pool() *pgxpool.Pool
	// Hold holds the lease that it runs under to the end of tx, a transaction of the
	// handler's, and reports false if the lease was lost. Where there is none it does
	// nothing.
	Hold(ctx context.Context, tx pgx.Tx) (held bool, err error)
	// Cause is what an effect of it is started by: the door, and scope and key
	// there. Without a key there is none.
	Cause() (door, scope, key string)
}

type contextKey struct{}

// With returns a context that carries x.
func With(ctx context.Context, x Execution) context.Context {
	return context.WithValue(ctx, contextKey{}, x)
}

// From returns the execution that ctx carries, if any.
func From(ctx context.Context) (Execution, bool) {
	x, ok := ctx.Value(contextKey{}).(Execution)
	return x, ok
}
