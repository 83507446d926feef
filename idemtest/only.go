package idemtest

import (
	"context"
	_ "embed"
	"slices"
	"sync/atomic"
	"time"

	"github.com/idem-go/idem/internal/pgsql"
	"github.com/idem-go/idem/internal/pgsql/tasks"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed sql/task_only.sql
var onlyTask string

// only has a worker take one task and no other, by way of its pool: before it asks for
// tasks, it is looked where this one has its place in the order, and the worker made to
// look there, for one; or for none at all. What it does with the task is not touched.
type only struct {
	pool *pgxpool.Pool // another than the worker's
	task task
	once bool // that it is taken

	asked   atomic.Bool // for any task
	handled atomic.Bool // it has asked for tasks like this one
}

// The parameters of a take, see task_take.sql.
const (
	takeQueue      = 0
	takeKinds      = 3
	takeLimit      = 5
	takeStart      = 6
	takePriorities = 7
	takeDues       = 8
	takeIDs        = 9
)

// TraceBatchStart is called with every batch of statements ahead of it.
func (o *only) TraceBatchStart(ctx context.Context, _ *pgx.Conn, batch pgx.TraceBatchStartData) context.Context {
	for _, statement := range batch.Batch.QueuedQueries {
		o.see(ctx, statement.SQL, statement.Arguments)
	}
	return ctx
}

// see looks at a statement ahead of it.
func (o *only) see(ctx context.Context, sql string, args []any) {
	if sql == tasks.Take || sql == tasks.TakeAlone {
		o.asked.Store(true)
		o.narrow(ctx, args, sql == tasks.TakeAlone)
	}
}

// TraceBatchQuery does nothing.
func (o *only) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd does nothing.
func (o *only) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// TraceQueryStart is called with every other statement ahead of it.
func (o *only) TraceQueryStart(ctx context.Context, _ *pgx.Conn, statement pgx.TraceQueryStartData) context.Context {
	o.see(ctx, statement.SQL, statement.Args)
	return ctx
}

// TraceQueryEnd does nothing.
func (o *only) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// narrow changes what is asked for.
func (o *only) narrow(ctx context.Context, args []any, alone bool) {
	args[takeLimit] = 0
	if args[takeQueue] != o.task.queue || !slices.Contains(args[takeKinds].([]string), o.task.kind) {
		return
	}
	o.handled.Store(true)
	var before *int
	if o.once {
		before = &o.task.takes
	}
	var priority int16
	var due time.Time
	err := o.pool.QueryRow(ctx, pgsql.Statement(onlyTask), o.task.id, before, o.task.queue, alone).Scan(&priority, &due)
	if err != nil { // it cannot be taken now
		return
	}
	args[takeLimit], args[takeStart] = 1, 1
	args[takePriorities], args[takeDues], args[takeIDs] = []int16{priority}, []time.Time{due}, []int64{o.task.id - 1}
}
