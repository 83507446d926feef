// Package queue is the task door: background work that runs once in effect, however
// often its worker dies.
//
// A task is enqueued in the transaction of the rows that it belongs to, so it exists
// if and only if they do. Its key is remembered for a stated time, so enqueueing it
// again finds the first one. A worker takes it with a lease and a fence, and runs its
// handler in one of two ways: in the transaction (Kind.Handle), where the handler's
// writes, its effects, its follow-up tasks and the end of the task commit together or
// not at all; or on a lease (Kind.HandleLeased), for work that leaves the database,
// through idem.Call. A worker that has lost its lease can record nothing.
//
// PostgreSQL's clock decides what is due and what has expired; this package never asks
// the machine's.
package queue
