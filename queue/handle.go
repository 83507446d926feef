package queue

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Handle makes w run fn for each task of the kind, in the transaction: what fn writes
// with tx, its effects, the tasks that it enqueues with it and the end of the task commit
// together, once fn has returned nil, or not at all. tx is also idem.Tx(ctx). It is opened
// by its first statement, under read committed, and is the worker's to end. fn must have
// no effect outside of it: a serialization failure or a deadlock runs it again at once,
// and a crash in another process. idem.AfterCommit is for what follows.
//
// An error rolls everything back and decides what follows: Fail, Snooze, Cancel; any
// other, and a panic, is tried again after a pause, as Options say. ctx ends with
// Options.Timeout, the lease, a cancellation or the worker's grace; fn must heed it.
//
// It is called before Run. What is wrong with it, such as a second handler of the kind, is
// an error of Run.
func (k *Kind[T]) Handle(w *Worker, fn func(ctx context.Context, tx pgx.Tx, payload T) error) {
	h := &handler{kind: k.name, options: k.options}
	if fn != nil {
		h.run = func(ctx context.Context, r *run) error {
			payload, err := decode[T](r.task.payload)
			if err != nil {
				return Fail(err)
			}
			return fn(ctx, r.tx, payload)
		}
	}
	w.handle(h, k.fault)
}

// HandleLeased makes w run fn for each task of the kind, on a lease: for work that leaves
// the database, each piece of which is an effect of its own (idem.Call, or idem.Apply in a
// transaction of fn's). The task is done once fn has returned nil. idem.Tx(ctx) is the one
// final transaction, which commits together with the end of the task; it begins with its
// first statement, after every Call. A task whose worker dies runs again, and skips the
// effects that are applied.
//
// Errors, ctx and faults are as with Handle; an error of idem.Call may be returned as it
// is.
func (k *Kind[T]) HandleLeased(w *Worker, fn func(ctx context.Context, payload T) error) {
	h := &handler{kind: k.name, options: k.options, leased: true}
	if fn != nil {
		h.run = func(ctx context.Context, r *run) error {
			payload, err := decode[T](r.task.payload)
			if err != nil {
				return Fail(err)
			}
			return fn(ctx, payload)
		}
	}
	w.handle(h, k.fault)
}
