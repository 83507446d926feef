// Package idemhttp is the request door: a middleware in net/http's own types
// that gives every repeat of a request, named by its Idempotency-Key header
// within a scope, the answer of the first one.
//
// The handler runs in one PostgreSQL transaction, which it gets from its context
// with idem.Tx; what it writes there commits together with its answer, which is
// stored before it is sent. Not a line of the handler runs for a key that has an
// answer, belongs to another request, or is in flight.
//
//	guard, err := idemhttp.New(db, idemhttp.Config{Scope: principal})
//	mux.Handle("POST /orders", guard.Route(idemhttp.Route{Name: "POST /orders"})(createOrder))
//
// What clients see is one table, in docs/http.md.
package idemhttp
